package planner

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrPlanMoved is the code for a plan whose preconditions no longer hold.
var ErrPlanMoved = errcode.Code{
	Name: "PlanMoved", Class: errcode.Conflict,
	Cause: "The state from which the plan was made, or a change in the plan, is no longer current.",
	Fix:   "Nothing was written. Run the command again: it plans with the current state. If the plan is in a file, make it again, and review it.",
}

// String describes the difference in one clause.
func (d Difference) String() string { return fmt.Sprintf("%s was %s and is %s", d.What, d.Was, d.Is) }

// MovedError returns the error of a plan with differences, or nil if there are none.
func MovedError(p *Plan, moved []Difference) error {
	if len(moved) == 0 {
		return nil
	}
	var reasons []string
	for _, d := range moved {
		reasons = append(reasons, d.String())
	}
	return ErrPlanMoved.New(few(reasons), "the plan to %s %s is stale", p.Verb(), p.Package.Short())
}

// RefusalError returns the error of a plan whose objects cannot be established, or that an install object would undo,
// otherwise nil.
func (p *Plan) RefusalError() error {
	if len(p.Findings) > 0 {
		return p.Findings[0].Err()
	}
	if len(p.Objects.Refusals) == 0 {
		if p.Maintained != nil {
			return p.Maintained.Err()
		}
		return nil
	}
	err := apply.Refused(p.Objects.Refusals, "%s cannot be established", p.Package.Short())
	if errors.Is(err, apply.ErrDeleting) {
		return err.WithDo(
			"Wait until the object is deleted, and try again. If it is not deleted, it has a finalizer: inspect it with kubectl.",
		)
	}
	holder := apply.HolderOf(p.Objects.Refusals)
	if holder == "" || !errors.Is(err, apply.ErrRefused) || p.Package.To == nil {
		return err
	}
	switch kind, _, _ := strings.Cut(holder, "/"); {
	case p.Operation == Update:
		return err.WithDo("%s", apply.HeldAdvice(holder, fmt.Sprintf("update both with `xpkg update %s %s`",
			holder, updateArgument(p.Package.Kind, p.Package.Name, p.Package.To.Reference))))
	case strings.EqualFold(kind, p.Package.Kind):
		return err.WithDo("%s %s", graph.MovedAdvice(holder, p.Package.To.Reference), err.Do)
	}
	return err
}

// Short returns the package in the form of command arguments, for example "provider/hello".
func (p Package) Short() string { return v1.ObjectName(p.Kind, p.Name) }

// few returns an error with the first few reasons, and the number of the others.
func few(reasons []string) error {
	const most = 3
	return errors.New(wording.Few(reasons, most, "; "))
}

// IsApplied reports whether a plan is already applied. Live is the current package, or nil.
func (p *Plan) IsApplied(live v1.Package) (bool, error) {
	if p.Operation == Uninstall {
		return live == nil || live.GetUID() == p.Preconditions.UID && live.GetDeletionTimestamp() != nil, nil
	}
	if live == nil || p.Operation == Update && live.GetUID() != p.Preconditions.UID {
		return false, nil
	}
	if p.Adopts && graph.IsAutoInstalled(live) {
		return false, nil
	}
	for _, object := range p.Adoptions {
		if !slices.Contains(revision.Adoptions(live), object) {
			return false, nil
		}
	}
	for _, item := range p.Accepts {
		if !slices.Contains(revision.BreaksAcceptedFor(live, p.Content.Digest), item) {
			return false, nil
		}
	}
	if p.Webhooks != nil && p.Webhooks.Consents {
		want, err := p.Wanted()
		if err != nil ||
			want.GetAnnotations()[webhooks.AnnotationAllowed] != live.GetAnnotations()[webhooks.AnnotationAllowed] {
			return false, err
		}
	}
	is, err := specOf(live)
	return err == nil && sameJSON(is, specIn(p.Package.Object)), err
}

// CheckPackage returns the differences between the package and the preconditions of the plan. It
// ignores the status, which is not part of a plan.
func (p *Plan) CheckPackage(live v1.Package) []Difference {
	var d differences
	if live == nil {
		d.text("the UID of the package", string(p.Preconditions.UID), "")
		return d
	}
	d.text("the UID of the package", string(p.Preconditions.UID), string(live.GetUID()))
	d.text("the generation of the package", number(p.Preconditions.Generation), number(live.GetGeneration()))
	if kinds := p.Preconditions.Kinds; kinds != "" {
		d.text("the annotations that choose kinds", kinds, wishOf(live))
	}
	return d
}
