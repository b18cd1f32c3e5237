package packages

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Counter counts the custom resources of CRDs, as [planner.Cluster].
type Counter interface {
	CustomResources(ctx context.Context, crds []string, identify bool) ([]planner.CustomResources, error)
}

// heldPoll is the pause between two counts of the custom resources that hold a deletion. An answer has an event.
const heldPoll = 15 * time.Second

// heldBecause returns why a deletion waits for a user, or "" if it does not: custom resources exist, and the answer
// does not permit their deletion. Invalid is the error of an answer that cannot be read.
func (r *Reconciler) heldBecause(
	ctx context.Context, p v1.Package, d deletion, answer revision.OnDelete, invalid error,
) (string, error) {
	if r.Unprotected || len(d.kinds) == 0 {
		return "", nil
	}
	counts, err := r.Counter.CustomResources(ctx, d.kinds, false)
	if err != nil {
		return "", err
	}
	return held(p, counts, answer, invalid), nil
}

// held returns why the deletion of a package with custom resources waits for a user, or "".
func held(p v1.Package, counts []planner.CustomResources, answer revision.OnDelete, invalid error) string {
	var total int64
	var kinds []string
	for _, c := range counts {
		total += c.Count
		kinds = append(kinds, c.String())
	}
	if len(counts) == 0 || answer.Cascade && answer.Permits(total) {
		return ""
	}
	const named = 3
	why := fmt.Sprintf("Nothing is deleted yet, because the package has %s (%s)",
		wording.Count(int(total), "custom resource"), wording.Few(kinds, named, ", "))
	switch {
	case invalid != nil:
		why += fmt.Sprintf(", and %v", invalid)
	case answer.Cascade:
		why += fmt.Sprintf(", more than the %d of the annotation %s", answer.AtMost, v1.AnnotationOnDelete)
	}
	return why + ". " + answerCommands(p, total)
}

// answerCommands returns the sentences with the commands that answer what happens to the custom resources of a package.
func answerCommands(p v1.Package, count int64) string {
	command := fmt.Sprintf("kubectl annotate --overwrite %ss.%s %s %s=",
		strings.ToLower(p.PackageKind()), v1.Group, p.GetName(), v1.AnnotationOnDelete)
	return fmt.Sprintf("Keep them, with all objects of the package, with `%s%s`. Delete them with `%s%s`.",
		command, revision.OnDelete{Orphan: true}, command, revision.OnDelete{Cascade: true, AtMost: count})
}

// orphan leaves the objects of a package that is being deleted to users.
func (r *Reconciler) orphan(ctx context.Context, p v1.Package, revisions []v1.PackageRevision) error {
	who := revision.Requester(p, p.NewRevision(), revisions)
	owned, _, err := r.API.Cluster.OwnedContent(ctx)
	if err != nil {
		return err
	}
	refs := owned.By(who.IsFamily)
	for _, rev := range revisions {
		refs = append(refs, plan.Without(revision.Objects(rev), refs)...)
	}
	live, err := r.API.Cluster.Metadata(ctx, refs)
	if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
		return err
	}
	_, err = r.API.Cluster.Run(ctx, plan.Orphan(live, who), nil)
	return err
}
