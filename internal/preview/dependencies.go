package preview

import (
	"cmp"
	"context"
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// dependencies plans what is there, comes and moves of what a package needs, and says
// whose needs it would not meet.
func (pl *Planner) dependencies(ctx context.Context, s *situation, p v1.Package, content oci.Digest, needs []format.Dependency, out *Plan) error {
	others, err := pl.nodes(ctx, s, needs)
	if err != nil {
		return err
	}
	// Without a repository nobody can need it.
	will, named := closure.At(p, p.PackageSpec().Package, content, needs)
	if named {
		others = append(others, will)
	}
	graph := closure.NewGraph(others, s.place)
	if !s.works(content) {
		if err := graph.Circle(p.PackageKind(), p.GetName()); err != nil {
			return err
		}
	}
	if named {
		out.Breaks = pl.breaks(s, graph, &will)
	}
	if p.PackageSpec().SkipDependencyResolution {
		out.Orphans = s.orphans(others, &will, nil)
		return nil
	}
	for i, d := range graph.Check(lockfile.Needs(needs)) {
		x := Dependency{Package: d.Need.Package, Constraint: d.Need.Constraint, State: d.State, Optional: d.Need.Optional, Kind: needs[i].Kind}
		if d.State != closure.Missing && d.State != closure.Off {
			x.Installed = d.At.Reference()
		}
		out.Dependencies = append(out.Dependencies, x)
	}
	changes, err := pl.bring(ctx, s, p, graph, out)
	out.Orphans = s.orphans(others, &will, changes)
	out.Preconditions.Installed = s.restsOn(out)
	return err
}

// works reports whether the package has been healthy with some content.
func (s *situation) works(content oci.Digest) bool {
	return s.live != nil && closure.Content(s.live) == content && closure.Proven(s.live, s.live.PackageStatus().CurrentRevision)
}

// nodes are all other packages, with what they need as the Lock says. What may be in
// the cluster is looked up of those that are needed.
func (pl *Planner) nodes(ctx context.Context, s *situation, needs []format.Dependency) ([]closure.Node, error) {
	var nodes []closure.Node
	needed := map[string][]string{}
	for _, x := range s.others {
		n, ok := s.node(x)
		if !ok {
			continue
		}
		nodes = append(nodes, n)
		if slices.ContainsFunc(needs, func(d format.Dependency) bool { return s.same(lockfile.Repository(d.Package), n.Package.Package) }) {
			needed[n.Kind] = append(needed[n.Kind], n.Name)
		}
	}
	running := map[string][]v1.PackageRevision{}
	for kind, names := range needed {
		revisions, err := pl.revisionsOf(ctx, kind, names...)
		if err != nil {
			return nil, err
		}
		for _, rev := range revisions {
			key := Package{Kind: kind, Name: rev.GetLabels()[v1.LabelPackage]}.Short()
			running[key] = append(running[key], rev)
		}
	}
	for i, n := range nodes {
		if some := running[Package{Kind: n.Kind, Name: n.Name}.Short()]; some != nil {
			nodes[i].Running = closure.Running(s.other(n), some)
		}
	}
	return nodes, nil
}

// node is another package, as it asks to be or as it was brought back.
func (s *situation) node(x v1.Package) (closure.Node, bool) {
	needs, known := closure.Locked(x, s.lock.Packages)
	if revision.PolicyOf(x).Back == "" || !known {
		return closure.Of(x, needs)
	}
	entry, _ := closure.Entry(x, s.lock.Packages)
	return closure.At(x, imageOf(entry), oci.Digest{}, needs)
}

// imageOf is the reference of an entry of the Lock, whose version is a tag or a digest.
func imageOf(entry v1beta1.LockPackage) string {
	if strings.HasPrefix(entry.Version, "sha256:") {
		return entry.Source + "@" + entry.Version
	}
	return entry.Source + ":" + entry.Version
}

// placeOf is where a repository is really read.
func (s *situation) placeOf(repository string) string {
	if s.place == nil {
		return repository
	}
	return s.place(repository)
}

// same reports whether two repositories are one.
func (s *situation) same(a, b string) bool { return s.placeOf(a) == s.placeOf(b) }

// other gives the package of a node that was made of it.
func (s *situation) other(n closure.Node) v1.Package {
	return s.others[slices.IndexFunc(s.others, func(x v1.Package) bool { return x.PackageKind() == n.Kind && x.GetName() == n.Name })]
}

// restsOn names the packages that a plan was made from: those that the package needs,
// and those that move with it. What becomes of any other package is no reason to plan
// again.
func (s *situation) restsOn(p *Plan) []Installed {
	repositories := map[string]bool{}
	for _, d := range p.Dependencies {
		repositories[s.placeOf(lockfile.Repository(d.Package))] = true
	}
	for _, b := range p.Brings {
		repositories[s.placeOf(lockfile.Repository(b.Reference))] = true
	}
	var out []Installed
	for _, x := range s.others {
		ref, err := oci.ParseReference(x.PackageSpec().Package, oci.ParseOptions{})
		if err != nil || !repositories[s.placeOf(ref.Name())] {
			continue
		}
		out = append(out, Installed{
			Kind: x.PackageKind(), Name: x.GetName(), Reference: x.PackageSpec().Package, Digest: x.PackageStatus().ResolvedDigest,
		})
	}
	slices.SortFunc(out, func(a, b Installed) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return out
}
