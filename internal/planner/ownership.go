package planner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// ErrMaintained is the code for a change that an install object would undo.
var ErrMaintained = errcode.Code{
	Name: "MaintainedByInstall", Class: errcode.Conflict,
	Cause: "An install object of the first generation maintains the package, and would undo the change.",
	Fix:   "Change or delete the install object. The message has the command.",
}

// Maintenance is the install object that maintains a package, and would undo a change of the package.
type Maintenance struct {
	// Maintainer describes the install object and the package.
	Maintainer string `json:"maintainer"`
	// Command changes or deletes the install object, so that the package changes.
	Command string `json:"command"`

	effect string
}

// Err returns the error MaintainedByInstall.
func (m *Maintenance) Err() error {
	return ErrMaintained.New(nil, "%s", m.Maintainer).
		WithDo("Run `%s` to %s the package.", m.Command, cmp.Or(m.effect, "change"))
}

// CheckMaintained fails with MaintainedByInstall if an install object of an API would undo the change of the live
// package to p, or its deletion if p is nil.
func CheckMaintained(ctx context.Context, api *frontend.API, reader client.Reader, live, p v1.Package) error {
	m, err := maintenanceOf(ctx, api, reader, live, p)
	if err == nil && m != nil {
		err = m.Err()
	}
	return err
}

// maintenance returns the install object that would undo the change of the live package to p, or its deletion if p is
// nil. It fails with MaintainedByInstall if there is one, unless ShowMaintained is set.
func (pl *planning) maintenance(ctx context.Context, live, p v1.Package) (*Maintenance, error) {
	m, err := maintenanceOf(ctx, pl.Frontend, pl.Reader, live, p)
	if err == nil && m != nil && !pl.ShowMaintained {
		return nil, m.Err()
	}
	return m, err
}

// recordMaintenance adds the install object that would undo the plan, which may be nil, and the command that makes the
// changes.
func (p *Plan) recordMaintenance(m *Maintenance) {
	if p.Maintained = m; m == nil {
		return
	}
	p.warn(fmt.Sprintf(
		"An install object would undo the %s: %s. To make these changes, run `%s`.", p.Operation, m.Maintainer, m.Command,
	))
}

// maintenanceOf returns the install object that would undo the change of the live package to p, or its deletion if p is
// nil; nil if there is none.
func maintenanceOf(
	ctx context.Context, api *frontend.API, reader client.Reader, live, p v1.Package,
) (*Maintenance, error) {
	if live == nil {
		return nil, nil
	}
	by := live.GetAnnotations()[state.AnnotationInstalledBy]
	if p != nil && p.PackageSpec().Package == live.PackageSpec().Package {
		return nil, nil // All settings that the install object does not determine belong to users.
	}
	parts := strings.Split(by, "/")
	if len(parts) != 3 {
		return nil, nil
	}
	in, err := api.Get(ctx, reader, frontend.Reference{Kind: parts[0], Namespace: parts[1], Name: parts[2]})
	if err != nil {
		return nil, fmt.Errorf("read the install object %s: %w", by, err)
	}
	if in == nil || !in.IsInstall || in.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	out := &Maintenance{Maintainer: fmt.Sprintf(
		"the %s %s in the namespace %s maintains the %s %s", in.PackageKind(), in.GetName(), in.GetNamespace(),
		live.PackageKind(), live.GetName(),
	)}
	if p == nil {
		out.Command, out.effect = in.Command("delete"), "uninstall"
		return out, nil
	}
	patch := wording.ShellWord(api.Patch(in.Resource, p.PackageSpec().Package))
	out.Command = in.Command("patch", "--type", "merge", "-p", patch)
	return out, nil
}

// allowAdoption changes p so that it may adopt all objects of users that it contains, if
// AdoptObjects is set. It returns the objects that p could not adopt before.
func (pl *planning) allowAdoption(ctx context.Context, p v1.Package, pkg *xpkg.Package) (adopted []string, err error) {
	if !pl.AdoptObjects {
		return nil, nil
	}
	objects, err := desired.Of(pkg, desired.Options{Package: p.GetName()})
	if err != nil {
		return nil, err
	}
	live, err := pl.Cluster.Metadata(ctx, objects.Refs())
	if err != nil {
		return nil, err
	}
	for _, r := range plan.Establish(objects.Desired(), live, nil, revision.Requester(p, p.NewRevision(), nil)).Refusals {
		if r.Cause == plan.NeedsAdoption {
			adopted = append(adopted, r.Ref.ObjectName())
		}
	}
	if len(adopted) > 0 {
		revision.AllowAdoption(p, adopted)
	}
	return adopted, nil
}

// allowBreaks changes p so that its version with a digest may break what AcceptBreaks names of its CRDs. It returns
// what the version of the live package, which can be nil, may not break.
func (pl *planning) allowBreaks(live, p v1.Package, pkg *xpkg.Package, digest string) ([]string, error) {
	if len(pl.AcceptBreaks) > 0 {
		breaks, err := breaksOf(pkg, p.GetName(), pl.AcceptBreaks)
		if err != nil {
			return nil, err
		}
		if len(breaks) > 0 {
			revision.AcceptBreaks(p, digest, breaks)
		}
	}
	accepted := revision.BreaksAcceptedFor(p, digest)
	if live == nil {
		return accepted, nil
	}
	former := revision.BreaksAcceptedFor(live, digest)
	return slices.DeleteFunc(accepted, func(item string) bool { return slices.Contains(former, item) }), nil
}

// breaksOf returns the items of a consent to break custom resources that concern CRDs of a package.
func breaksOf(pkg *xpkg.Package, name string, items []string) ([]string, error) {
	objects, err := desired.Of(pkg, desired.Options{Package: name})
	if err != nil {
		return nil, err
	}
	crds, err := objects.ComposedCRDs()
	if err != nil {
		return nil, err
	}
	crds = append(crds, objects.Refs()...)
	return slices.DeleteFunc(slices.Clone(items), func(item string) bool {
		crd, _, _ := strings.Cut(item, "/")
		return !slices.ContainsFunc(crds, func(r plan.Ref) bool { return r.Kind == plan.DefinitionKind && r.Name == crd })
	}), nil
}

// explainAdoption adds to refusals the command that applies the plan and adopts the objects.
func (p *Plan) explainAdoption() {
	command := p.command() + " --adopt"
	for i := range p.Objects.Refusals {
		if r := &p.Objects.Refusals[i]; r.Cause == plan.NeedsAdoption {
			r.Fix = "review the objects, and run `" + command + "` to let the package adopt them, or delete them"
		}
	}
}
