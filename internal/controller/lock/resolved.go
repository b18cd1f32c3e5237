package lock

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/solver"
)

// mostNamed is the maximum number of packages that the message of the condition names.
const mostNamed = 3

// progress is the state of the dependencies of a revision.
type progress int

const (
	// unchecked are the dependencies of a new revision. They do not change the condition: most
	// packages have no dependencies, and each change of the condition costs a write.
	unchecked progress = iota
	satisfied
	// pending dependencies are being installed or updated.
	pending
	failed
)

// Resolved returns the Resolved condition of the Lock for the active ones among revisions. The
// condition is True if all dependencies are satisfied, False if a dependency cannot be satisfied,
// and Unknown while a dependency is being installed or updated. Resolved returns false if no active
// revision was reconciled yet.
func Resolved(revisions []v1.PackageRevision) (v1.Condition, bool) {
	byProgress := map[progress][]string{}
	for _, rev := range revisions {
		if !revision.IsActive(rev) || rev.GetDeletionTimestamp() != nil {
			continue
		}
		p := progressOf(rev)
		byProgress[p] = append(byProgress[p], rev.RevisionSpec().Image+": "+rev.GetCondition(v1.TypeReady).Message)
	}
	switch {
	case len(byProgress[failed]) > 0:
		return v1beta1.ResolutionFailed(summary(byProgress[failed])), true
	case len(byProgress[pending]) > 0:
		return v1beta1.ResolutionPending(summary(byProgress[pending])), true
	case len(byProgress[satisfied]) > 0:
		return v1beta1.ResolutionSucceeded(), true
	}
	return v1.Condition{}, false
}

// progressOf returns the state of the dependencies of an active revision.
func progressOf(rev v1.PackageRevision) progress {
	if rev.RevisionSpec().SkipDependencyResolution {
		return satisfied
	}
	ready, s := rev.GetCondition(v1.TypeReady), rev.RevisionStatus()
	switch {
	case ready.Status == corev1.ConditionTrue:
		return satisfied
	case ready.Reason == "":
		return unchecked
	case string(ready.Reason) == graph.ErrDependencyComing.Name:
		return pending
	case isResolutionFailure(ready.Reason), s.InstalledDependencies < s.FoundDependencies, s.InvalidDependencies > 0:
		return failed
	}
	return satisfied
}

func isResolutionFailure(reason v1.ConditionReason) bool {
	codes := slices.Concat(graph.Codes(), resolver.Codes(), solver.Codes())
	return slices.ContainsFunc(codes, func(c errcode.Code) bool { return c.Name == string(reason) })
}

func summary(lines []string) string {
	slices.Sort(lines)
	return wording.Few(lines, mostNamed, "; ")
}
