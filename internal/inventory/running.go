package inventory

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Running is the version of a package that is active, or whose runtime runs, in place of the requested version, which
// is not healthy, waits to be activated, or is not reconciled, because the package is paused or the manager does not
// run.
type Running struct {
	Package  string `json:"package"`
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Healthy  bool   `json:"healthy"`
}

// String returns the version and its state, such as "v1.0.0 runs".
func (r Running) String() string {
	if r.Healthy {
		return r.Version + " runs"
	}
	return r.Version + " is active"
}

// MayRunAnother reports whether another version than the requested one may run, so that the revisions of the package
// must be read for [RunningInstead].
func MayRunAnother(p v1.Package) bool {
	status := p.PackageStatus()
	isFirst := status.Activation != nil && status.Activation.Number == 1
	health := p.GetCondition(v1.TypeHealthy)
	isCurrent := health.Status == corev1.ConditionTrue && health.ObservedGeneration == p.GetGeneration()
	isUnhealthy := !isCurrent && (!isFirst || status.CurrentIdentifier != p.PackageSpec().Package)
	return status.CurrentRevision != "" && (isUnhealthy || PendingActivation(p) != "")
}

// RunningInstead returns the version of a package that runs in place of the requested one, or nil. After a rollback,
// and before the content of the requested version is available, it is the active revision. Otherwise it is a former
// revision that was not stopped yet. Revisions are the revisions of the package.
func RunningInstead(p v1.Package, revisions []v1.PackageRevision) *Running {
	i := slices.IndexFunc(revisions, revision.IsActive)
	if !MayRunAnother(p) || i < 0 {
		return nil
	}
	active, former := revisions[i], v1.PackageRevision(nil)
	isRolledBack := revision.PolicyOf(p).Back == active.GetName()
	for _, rev := range revisions {
		if !isRolledBack && runsBefore(p, rev, active) &&
			(former == nil || former.RevisionSpec().Revision < rev.RevisionSpec().Revision) {
			former = rev
		}
	}
	switch {
	case former != nil:
		return newRunning(p, former)
	case isRolledBack, active.RevisionSpec().Image != p.PackageSpec().Package:
		return newRunning(p, active)
	}
	return nil
}

// runsBefore reports whether the runtime of an inactive revision runs until that of the active one can replace it:
// until the objects of the active one are established, and for a Function until its runtime serves.
func runsBefore(p v1.Package, rev, active v1.PackageRevision) bool {
	if revision.IsActive(rev) || revision.HealthOf(rev) != corev1.ConditionTrue {
		return false
	}
	hasRuntime := rev.GetCondition(v1.TypeRuntimeActive).Status == corev1.ConditionTrue
	former, ok := rev.(*v1.FunctionRevision)
	if hasRuntime || !ok {
		return hasRuntime
	}
	a := p.PackageStatus().Activation
	return former.Status.Endpoint != "" && (a == nil || !a.Healthy) &&
		active.(*v1.FunctionRevision).Status.Endpoint == former.Status.Endpoint
}

func newRunning(p v1.Package, rev v1.PackageRevision) *Running {
	spec := rev.RevisionSpec()
	out := &Running{
		Package: spec.Image, Version: ShortVersion(spec.Image), Revision: rev.GetName(),
		Healthy: revision.HealthOf(rev) == corev1.ConditionTrue,
	}
	if out.Version == ShortVersion(p.PackageSpec().Package) {
		// Its tag was moved to other content.
		if d, err := oci.ParseDigest(spec.Digest); err == nil {
			out.Version = d.Short()
		}
	}
	return out
}
