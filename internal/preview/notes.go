package preview

import (
	"fmt"
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/plan"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// warn adds warnings.
func (p *Plan) warn(all ...string) { p.Warnings = append(p.Warnings, all...) }

// notes are what a person should know beside the changes of a plan.
func notes(p v1.Package, n succession, out *Plan) []string {
	var all []string
	if p.GetDeletionTimestamp() != nil {
		all = append(all, "The package is being deleted: nothing of this happens.")
	}
	if v1.IsPaused(p) {
		all = append(all, fmt.Sprintf("The package is paused: nothing happens until the annotation %s is removed.", v1.AnnotationPaused))
	}
	if v1.IsPaused(n.current) {
		all = append(all, fmt.Sprintf("The revision %s is paused: its objects stay as they are until the annotation %s is removed.", n.current.GetName(), v1.AnnotationPaused))
	}
	if out.Adopts {
		all = append(all, "The package was installed because others need it. It is yours then, and stays when nobody needs it any more.")
	}
	policy := revision.PolicyOf(p)
	switch {
	case n.decision.Activate == n.current.GetName():
	case n.current.GetName() == policy.Refused:
		all = append(all, fmt.Sprintf("The revision %s did not become healthy in time: %s was brought back, and stays until the spec of the package changes.", policy.Refused, policy.Back))
	default:
		all = append(all, fmt.Sprintf("The revisionActivationPolicy is Manual: the revision %s waits until a person sets its spec.desiredState to Active.", n.current.GetName()))
	}
	if out.Waits() {
		all = append(all, "Objects are changed only when these are installed: "+strings.Join(out.unsatisfied(), ", ")+".")
	}
	if coming := out.coming(); len(coming) > 0 && !out.Waits() {
		all = append(all, "Objects are changed when these have arrived: "+strings.Join(coming, ", ")+".")
	}
	if slices.ContainsFunc(out.Objects.Changes, func(c plan.Change) bool {
		return c.Action == plan.Create && plan.IsWebhookConfiguration(c.Ref)
	}) {
		all = append(all, "Webhook configurations come when the program of the package answers, and not where nobody runs it.")
	}
	return all
}
