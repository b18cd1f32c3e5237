package controller

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
)

// found are the dependencies for which a revision has to wait, and those that are off,
// in words.
type found struct {
	missing, unfit, coming, off []string
	// late is how many of those that are coming are not optional.
	late int
}

// count writes into a status how many dependencies there are of those that have to be.
func (f found) count(status *v1.PackageRevisionStatus, all int) {
	status.FoundDependencies = int64(all)
	status.InstalledDependencies = int64(all - len(f.missing) - f.late)
	status.InvalidDependencies = int64(len(f.unfit) + len(f.coming) - f.late)
	status.AbsentOptionalDependencies = f.off
}

// lookAt tells what there is of dependencies.
func (w *world) lookAt(ctx context.Context, all []graph.DependencyStatus) found {
	var out found
	for _, d := range all {
		switch d.State {
		case graph.Absent:
			out.off = append(out.off, d.Dependency.Package+" "+d.Dependency.Constraint)
		case graph.Missing:
			out.missing = append(out.missing, strings.TrimSpace(d.Dependency.Package+" "+d.Dependency.Constraint))
		case graph.Incompatible:
			words := "%s is installed at %s, and %s is needed"
			if d.Dependency.Optional {
				words = "%s is installed at %s, and the package works only with %s"
			}
			out.unfit = append(out.unfit, fmt.Sprintf(words, d.Dependency.Package, atOf(d), d.Dependency.Constraint)+w.says(ctx, d.Installed))
		case graph.Progressing:
			out.coming = append(out.coming, fmt.Sprintf("%s is on its way from %s to %s", d.Dependency.Package, oldest(d.Installed), d.Installed.VersionOrDigest())+w.says(ctx, d.Installed))
			if !d.Dependency.Optional {
				out.late++
			}
		}
	}
	return out
}

// atOf is the version that is there, with its digest where that makes the difference.
func atOf(d graph.DependencyStatus) string {
	if strings.Contains(d.Dependency.Constraint, "sha256:") && !d.Installed.Digest.IsZero() {
		return d.Installed.Pin()
	}
	return d.Installed.VersionOrDigest()
}

// oldest is the version that is in the cluster for as long as another one is on its way.
func oldest(n graph.Node) graph.Version { return n.Running[len(n.Running)-1] }

// says is what a package that is not ready says of itself, to be added to what is said
// of it.
func (w *world) says(ctx context.Context, n graph.Node) string {
	p := v1.NewPackage(n.Kind)
	if w.client.Get(ctx, client.ObjectKey{Name: n.Name}, p) != nil {
		return ""
	}
	ready := p.GetCondition(v1.TypeReady)
	if ready.Status == corev1.ConditionTrue || ready.Message == "" {
		return ""
	}
	// What to do is said once, by whoever tells of it.
	message := strings.TrimSuffix(ready.Message, " "+ErrDependencyComing.Fix)
	return "; it says: " + strings.TrimSuffix(message, ".")
}
