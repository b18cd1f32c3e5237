package preview

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/desired"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/plan"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// ErrNotInstalled is the failure of an uninstall of what is not there.
var ErrNotInstalled = failure.Register(failure.Code{
	Name: "NotInstalled", Class: failure.NotFound,
	Cause: "The package that would be uninstalled is not there.",
	Fix:   "See what is installed with `xpkg list`.",
})

// Uninstall plans that the package with the kind and name of p is deleted. It
// fails with NotInstalled when there is none.
func (pl *Planner) Uninstall(ctx context.Context, p v1.Package) (*Plan, error) {
	s, err := pl.read(ctx, p)
	if err != nil {
		return nil, err
	}
	if s.live == nil {
		return nil, ErrNotInstalled.New(nil, "there is no %s %s", strings.ToLower(p.PackageKind()), p.GetName())
	}
	out, err := s.start(Uninstall, p)
	if err != nil {
		return nil, err
	}
	for _, r := range out.Preconditions.Revisions {
		out.Revisions = append(out.Revisions, RevisionChange{
			Action: CollectRevision, Name: r.Name, Number: r.Number, State: r.State, Digest: r.Digest,
		})
	}
	refs := pl.brought(ctx, s, out)
	live, err := pl.lenient(ctx, refs)
	if err != nil {
		return nil, err
	}
	out.Objects = plan.Uninstall(live, family(s))
	if out.Resources, err = pl.Cluster.Count(ctx, definitions(out.Objects)); err != nil {
		return nil, err
	}
	return out, pl.bereaves(ctx, s, out)
}

// bereaves says who needs the package that goes, and that it comes back for those.
func (pl *Planner) bereaves(ctx context.Context, s *situation, out *Plan) error {
	others, err := pl.nodes(ctx, s, nil)
	if err != nil {
		return err
	}
	out.Breaks = pl.breaks(s, closure.NewGraph(others, s.place), nil)
	out.Orphans = s.orphans(others, nil, nil)
	if _, installs := s.lock.Annotations[closure.AnnotationUpgrades]; installs && len(out.Breaks) > 0 {
		out.warn(fmt.Sprintf("The package manager installs it again: %s.", out.Breaks[0]))
	}
	return nil
}

// lenient reads metadata kind by kind: of a kind that the cluster does not know any
// more there is nothing to take away.
func (pl *Planner) lenient(ctx context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error) {
	type kind struct{ apiVersion, kind string }
	byKind := map[kind][]plan.Ref{}
	for _, ref := range refs {
		k := kind{ref.APIVersion, ref.Kind}
		byKind[k] = append(byKind[k], ref)
	}
	live := map[plan.Ref]plan.Live{}
	for _, some := range byKind {
		found, err := pl.Cluster.Metadata(ctx, some)
		if err != nil && !apply.ErrKindNotServed.Is(err) {
			return nil, err
		}
		maps.Copy(live, found)
	}
	return live, nil
}

// family is in whose name objects are owned that a package brought.
func family(s *situation) plan.Requester {
	none := s.live.NewRevision()
	return revision.Requester(s.live, none, s.revisions)
}

// brought lists the objects that the revisions of a package own. A revision that
// never established any owns those of its content that are there.
func (pl *Planner) brought(ctx context.Context, s *situation, out *Plan) []plan.Ref {
	seen := map[plan.Ref]bool{}
	for _, rev := range s.revisions {
		refs := revision.Objects(rev)
		if len(refs) == 0 {
			pkg, err := pl.contentOf(ctx, rev)
			if err != nil {
				out.warn(fmt.Sprintf("What the revision %s owns is not known: %v.", rev.GetName(), err))
				continue
			}
			objects, err := desired.Of(pkg, revision.Additions(rev, pl.Namespace))
			if err != nil {
				out.warn(fmt.Sprintf("What the revision %s owns is not known: %v.", rev.GetName(), err))
				continue
			}
			refs = objects.Refs()
		}
		for _, ref := range refs {
			seen[ref] = true
		}
	}
	refs := make([]plan.Ref, 0, len(seen))
	for ref := range seen {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, plan.Ref.Compare)
	return refs
}

// definitions are the names of those definitions that a plan deletes, in order.
// All kinds of definition are named by the resource that they define.
func definitions(p plan.Plan) []string {
	var names []string
	for _, c := range p.Changes {
		switch {
		case c.Action != plan.Delete:
		case c.Ref.Kind == plan.DefinitionKind, c.Ref.Kind == "CompositeResourceDefinition":
			names = append(names, c.Ref.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
