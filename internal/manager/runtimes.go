package manager

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/runtime"
)

// newPrograms makes those who run the programs of packages.
func newPrograms(o Options, mgr ctrl.Manager) *programs {
	out := &programs{choice: o.Runtimes, runtimes: map[runtime.Name]runtime.Runtime{}}
	if o.Runtimes.Uses(runtime.External) {
		out.runtimes[runtime.External] = runtime.ExternalRuntime{Reader: mgr.GetClient()}
	}
	return out
}

// reported lets through what somebody else says of a program that he runs.
func (w *world) reported(kind string) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		if w.programs.choice.Of(kind, e.ObjectNew.GetLabels()[v1.LabelPackage]) != runtime.External {
			return false
		}
		was, is := e.ObjectOld.(v1.PackageRevision).GetCondition(v1.TypeRuntimeHealthy), e.ObjectNew.(v1.PackageRevision).GetCondition(v1.TypeRuntimeHealthy)
		return was != is
	}}
}
