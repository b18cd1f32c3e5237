package manager

import (
	"errors"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// ErrRolledBack is the failure of a package whose new revision did not become
// healthy in time.
var ErrRolledBack = failure.Register(failure.Code{
	Name: "RolledBack", Class: failure.Unhealthy,
	Cause: "A new revision of the package did not become healthy in time, and the one that was healthy last was brought back.",
	Fix:   "Mend what the message names, or ask for another version: any change of the package's spec tries again.",
})

// gate watches over the activation of a revision. One that does not become
// healthy before the deadline makes place for the one that was healthy last, once.
type gate struct {
	deadline time.Duration
	now      func() time.Time
}

// judge looks at the activation that is under way, and decides on a rollback. The
// decision is written down before it is carried out, so that it survives a crash;
// judge reports that.
func (g gate) judge(p v1.Package, revisions []v1.PackageRevision) (decided bool) {
	status := p.PackageStatus()
	if b := status.Rollback; b != nil && b.Generation != p.GetGeneration() {
		status.Rollback = nil
	}
	a := status.Activation
	rev := find(revisions, a)
	if rev == nil || a.Healthy || waitsForRights(rev) {
		return false
	}
	if v := verdictOn(rev); v.ready {
		a.Healthy, status.LastHealthyRevision = true, rev.GetName()
		return false
	}
	if g.left(p) > 0 || g.deadline == 0 || status.Rollback != nil {
		return false
	}
	previous := revision.Back(p, rev.GetName(), revisions)
	if previous == "" {
		return false
	}
	status.Rollback = &v1.Rollback{
		From: rev.GetName(), To: previous, Generation: p.GetGeneration(), Time: metav1.NewTime(g.now()), Message: verdictOn(rev).message,
	}
	return true
}

// find gives the active revision that an activation is about.
func find(revisions []v1.PackageRevision, a *v1.Activation) v1.PackageRevision {
	if a == nil {
		return nil
	}
	i := slices.IndexFunc(revisions, func(r v1.PackageRevision) bool { return r.GetName() == a.Revision && active(r) })
	if i < 0 {
		return nil
	}
	return revisions[i]
}

// begin records that a revision was activated. The time of one that waits for rights
// begins when it has them: nothing of it is there before, and what ran goes on.
func (g gate) begin(p v1.Package, d revision.Decision, revisions []v1.PackageRevision) {
	status := p.PackageStatus()
	if d.Activate == "" {
		status.Activation = nil
		return
	}
	if slices.ContainsFunc(revisions, func(rev v1.PackageRevision) bool { return rev.GetName() == d.Activate && waitsForRights(rev) }) {
		status.Activation = nil
	} else if a := status.Activation; a == nil || a.Revision != d.Activate || a.Number != d.Number {
		status.Activation = &v1.Activation{Revision: d.Activate, Number: d.Number, Since: metav1.NewTime(g.now())}
	}
	if b := status.Rollback; b != nil && d.Activate != b.To {
		// Other content, or a person, has made another revision the active one.
		status.Rollback = nil
	}
}

// left is how long the activation that is under way may still take. It is not
// positive when none is, or its time is over.
func (g gate) left(p v1.Package) time.Duration {
	a := p.PackageStatus().Activation
	if a == nil || a.Healthy || g.deadline == 0 {
		return 0
	}
	return a.Since.Add(g.deadline).Sub(g.now())
}

// verdict is what a rollback says of the package, with what the revision says that
// runs instead.
func (g gate) verdict(b *v1.Rollback, running verdict) verdict {
	why := strings.TrimSuffix(b.Message, ".")
	if !running.ready && running.message != "" {
		why += "; " + b.To + " says: " + strings.TrimSuffix(running.message, ".")
	}
	err := ErrRolledBack.New(errors.New(why), "revision %s was not healthy in %s, and %s was brought back", b.From, g.deadline, b.To)
	return verdict{stalled: true, reason: v1.ReasonRolledBack, message: failure.Message(err)}
}
