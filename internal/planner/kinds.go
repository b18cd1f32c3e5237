package planner

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/solver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// bindKinds selects the packages that provide the kinds that a package requires, and records them on p, as the manager
// does. For other kinds it selects packages from the sources of the planner. It fails with AmbiguousKind or NoProvider,
// so that the plan of a package whose kinds are not decided has no writes.
func (pl *planning) bindKinds(
	ctx context.Context, s *clusterState, p v1.Package, pkg *xpkg.Package,
) ([]dependency.Dependency, error) {
	if len(pkg.Meta.Kinds) == 0 || p.PackageSpec().SkipDependencyResolution {
		return nil, nil
	}
	recorded := graph.KindProviders(p)
	if s.live != nil {
		for _, d := range graph.KindProviders(s.live) {
			if !slices.Contains(recorded, d) {
				recorded = append(recorded, d)
			}
		}
	}
	found, err := state.BindKinds(ctx, pl.Cluster, pkg, recorded, s.repositoryOf)
	if err != nil {
		return nil, err
	}
	graph.SetKindProviders(p, found.Selected)
	if s.released, err = state.ReleasedKinds(ctx, pl.Cluster, found.Selected); err != nil {
		return nil, err
	}
	if len(found.Missing) == 0 {
		return found.Selected, nil
	}
	// An installed package whose objects do not exist yet will provide them. Like the manager, the plan does not record
	// it.
	linked, rest, err := pl.linkedKinds(ctx, s, p, found.Missing)
	if err != nil {
		return nil, err
	}
	if found.Missing = rest; len(rest) > 0 {
		selected, err := pl.selectProviders(ctx, s, found)
		if err != nil {
			return nil, err
		}
		found.Selected = append(found.Selected, selected...)
		graph.SetKindProviders(p, found.Selected)
	}
	return append(found.Selected, linked...), nil
}

// linkedKinds returns the dependencies of a package on the installed packages that define missing kinds, and the other
// kinds.
func (pl *planning) linkedKinds(
	ctx context.Context, s *clusterState, p v1.Package, missing []dependency.KindRef,
) ([]dependency.Dependency, []dependency.KindRef, error) {
	nodes, err := pl.nodes(ctx, s, func(string) bool { return false })
	if err != nil {
		return nil, nil, err
	}
	own := graph.Node{Kind: p.PackageKind(), Name: p.GetName(), Package: lockfile.Package{
		Repository: oci.RepositoryName(p.PackageSpec().Package),
	}}
	nodes = state.LinkKinds(ctx, append(nodes, own), s.contents)
	linked, rest := state.LinkedKinds(nodes[len(nodes)-1], missing)
	return linked, rest, nil
}

// selectProviders selects the packages for missing kinds, or for all kinds of a group, from the sources of the planner.
// They do not conflict with the packages for other kinds.
func (pl *planning) selectProviders(
	ctx context.Context, s *clusterState, bound state.KindBinding,
) ([]dependency.Dependency, error) {
	finder := pl.Kinds
	if finder == nil {
		finder = &provide.Finder{}
	}
	installed := s.repositories()
	kinds, recorded := slices.Clone(bound.Missing), map[dependency.KindRef]string{}
	for _, d := range bound.Selected {
		if k, err := dependency.ParseKindRef(d.CRD); err == nil {
			kinds = append(kinds, k)
			recorded[k] = d.Package
		}
	}
	rankings, err := finder.RankTogether(ctx, kinds, provide.Request{Present: installed, RecordedKinds: recorded})
	if err != nil {
		return nil, err
	}
	var out []dependency.Dependency
	for _, r := range rankings {
		if slices.Contains(kinds[len(bound.Missing):], r.Kind) {
			continue
		}
		if err := finder.Err(ctx, r); err != nil {
			return nil, err
		}
		if err := pl.checkInstalledProvides(s, r); err != nil {
			return nil, err
		}
		out = append(out, dependency.Dependency{
			Package: r.Order[0].Repository, Constraint: r.Order[0].Constraint, CRD: r.Kind.String(),
		})
	}
	return out, nil
}

// checkInstalledProvides fails with KindHeld if the package that is selected for a kind is installed. Its installed
// version does not define the kind: otherwise, the package would be bound to it. A package that is changed together
// with the planned one can.
func (pl *planning) checkInstalledProvides(s *clusterState, r provide.Ranking) error {
	first := r.Order[0]
	for _, x := range s.others {
		own := Package{Kind: x.PackageKind(), Name: x.GetName()}
		if s.sameRepository(oci.RepositoryName(x.PackageSpec().Package), first.Repository) &&
			!pl.ChangedTogether[own.Short()] {
			return provide.OtherVersion(own.Short(), r)
		}
	}
	return nil
}

// warnOfKinds adds a warning for each kind that an added package requires and that no package provides: the manager
// selects none.
func (pl *planning) warnOfKinds(
	ctx context.Context, s *clusterState, after *graph.Graph, changes []graph.Change, out *Plan,
) error {
	for _, c := range changes {
		pkg := s.contents.Known[c.To.Repository]
		n, ok := after.Find(c.To.Repository)
		if pkg == nil || !ok || n.SkipDependencies {
			continue
		}
		found, err := state.BindKinds(ctx, pl.Cluster, pkg, n.Dependencies, s.repositoryOf)
		if err != nil {
			return err
		}
		for _, kind := range found.Missing {
			out.warn(fmt.Sprintf(
				"%s, which is installed with the package, requires %s, and no installed package provides it: both wait until one does.",
				c.Reference(), kind,
			))
		}
	}
	return nil
}

// repositoryOf returns the repository of an installed package, or "".
func (s *clusterState) repositoryOf(kind, name string) string {
	for _, x := range s.others {
		if x.PackageKind() == kind && x.GetName() == name {
			return oci.RepositoryName(x.PackageSpec().Package)
		}
	}
	return ""
}

// repositories returns the repositories of all other packages.
func (s *clusterState) repositories() map[string]bool {
	out := map[string]bool{}
	for _, x := range s.others {
		out[oci.RepositoryName(x.PackageSpec().Package)] = true
	}
	return out
}

// movedKinds adds to the plan the users of the kinds that an installed package loses by a change.
func (pl *planning) movedKinds(
	ctx context.Context, s *clusterState, c graph.Change, content *xpkg.Package, out *Plan,
) error {
	if c.Existing == nil {
		return nil
	}
	live, err := s.installed(ctx, c.Existing.Kind, c.Existing.Name)
	if err != nil {
		return err
	}
	node, _ := graph.NodeFromImage(live, c.Reference(), c.To.Digest, nil)
	return pl.lostKinds(ctx, s, live, content, node, out)
}

// lostKinds adds to the plan the packages and the objects of the first generation that use an installed package as the
// provider of a kind, if the package does not provide the kind after the operation, or is another package then. The
// content is nil, and the node is empty, if the operation deletes the package.
func (pl *planning) lostKinds(
	ctx context.Context, s *clusterState, live v1.Package, content *xpkg.Package, node graph.Node, out *Plan,
) error {
	if live == nil {
		return nil
	}
	uses := pl.usesOf(ctx, live, out)
	installs := uses.Installs
	repository, provided := oci.RepositoryName(live.PackageSpec().Package), map[dependency.KindRef]bool{}
	for _, user := range kindUsers(s, live, uses) {
		defines := content != nil && provide.DefinesKind(content, user.crd)
		switches := content != nil && !s.sameRepository(repository, node.Repository) && !user.anyPackage
		if defines && !switches || pl.ChangedTogether[Package{Kind: user.kind, Name: user.name}.Short()] {
			continue
		}
		if _, known := provided[user.crd]; !known {
			var err error
			if provided[user.crd], err = pl.provides(ctx, live, user.crd); err != nil {
				return err
			}
		}
		if !provided[user.crd] {
			continue
		}
		lost := Broken{Kind: user.kind, Name: user.name, Requires: repository}
		switch {
		case defines:
			lost.ReplacedBy = node.Repository
		case content != nil:
			lost.Installed = node.VersionOrDigest()
		}
		out.addLostKind(lost, user.crd)
	}
	if content == nil {
		pl.lostProvider(installs, repository, out)
	} else {
		pl.lostVersions(installs, live, node, out)
	}
	return nil
}

// lostVersions adds to the plan the PackageInstalls that name the version of the Provider whose CRDs they share, if the
// Provider has another version, or is another package, after the operation.
func (pl *planning) lostVersions(installs []*frontend.Object, live v1.Package, node graph.Node, out *Plan) {
	var lost []string
	for _, in := range installs {
		user := Package{Kind: in.PackageKind(), Name: in.ShortName()}
		ref, err := oci.ParseReference(in.Reference, oci.ParseOptions{DefaultRegistry: "docker.io", AllowUntagged: true})
		if err != nil || !in.Shares || pl.ChangedTogether[user.Short()] {
			continue
		}
		if ref.Tag == "" && ref.Digest.IsZero() {
			ref = ref.WithTag("latest")
		}
		spec, status := live.PackageSpec(), live.PackageStatus()
		// The manager finds the Provider of a PackageInstall by its repository.
		keeps := oci.SameRepository(node.Repository, oci.RepositoryName(ref.String())) &&
			state.IsVersion(ref, node.Reference(), node.Digest.String())
		if !state.IsVersion(ref, spec.Package, status.ResolvedDigest) || keeps {
			continue
		}
		out.Breaks = append(out.Breaks, Broken{
			Kind: user.Kind, Name: user.Name, Requires: oci.RepositoryName(spec.Package), Constraint: ref.Identifier(),
			Installed: node.VersionOrDigest(),
		})
		lost = append(lost, user.Short())
	}
	if len(lost) > 0 && out.Remedy == "" {
		out.Remedy = fmt.Sprintf(
			"All namespaces have the version of the Provider. After the update, set spec.package of %s to %s.",
			wording.Few(lost, maxInstallsInText, ", "), node.Reference(),
		)
	}
}

// lostProvider adds to the plan the install objects whose Provider the operation deletes, as far as they are not in the
// plan as users of a kind.
func (pl *planning) lostProvider(installs []*frontend.Object, repository string, out *Plan) {
	for _, in := range installs {
		user := Package{Kind: in.PackageKind(), Name: in.ShortName()}
		known := slices.ContainsFunc(out.Breaks, func(b Broken) bool { return b.Kind == user.Kind && b.Name == user.Name })
		if !known && !pl.ChangedTogether[user.Short()] {
			out.Breaks = append(out.Breaks, Broken{Kind: user.Kind, Name: user.Name, Requires: repository})
		}
	}
}

// addLostKind adds a kind to the broken dependency of its user on the package that provides it.
func (p *Plan) addLostKind(lost Broken, crd dependency.KindRef) {
	at := slices.IndexFunc(
		p.Breaks, func(b Broken) bool { return b.Kind == lost.Kind && b.Name == lost.Name && b.Requires == lost.Requires },
	)
	if at < 0 {
		at = len(p.Breaks)
		p.Breaks = append(p.Breaks, lost)
	}
	b := &p.Breaks[at]
	b.ReplacedBy = lost.ReplacedBy
	if !slices.Contains(b.Kinds, crd.String()) {
		b.Kinds = append(b.Kinds, crd.String())
	}
}

// provides reports whether a package holds a kind that the API server serves.
func (pl *planning) provides(ctx context.Context, p v1.Package, kind dependency.KindRef) (bool, error) {
	held, err := state.FindKinds(ctx, pl.Cluster, kind)
	return slices.ContainsFunc(held, func(h state.HeldKind) bool {
		return h.PackageKind == p.PackageKind() && h.PackageName == p.GetName() && h.Serves(kind.Version)
	}), err
}

// A kindUser is an object that uses a package as the provider of a kind.
type kindUser struct {
	kind, name string
	crd        dependency.KindRef
	// anyPackage reports whether the object requires the kind of any package.
	anyPackage bool
}

// kindUsers returns the other packages, and the objects among uses, that use an installed package as the provider of a
// kind.
func kindUsers(s *clusterState, live v1.Package, uses frontend.Uses) []kindUser {
	var users []kindUser
	add := func(kind, name, crd string) {
		if k, err := dependency.ParseKindRef(crd); err == nil {
			users = append(users, kindUser{kind: kind, name: name, crd: k})
		}
	}
	repository := oci.RepositoryName(live.PackageSpec().Package)
	for _, x := range s.others {
		for _, d := range graph.KindProviders(x) {
			if s.sameRepository(d.Package, repository) && !x.PackageSpec().SkipDependencyResolution {
				add(x.PackageKind(), x.GetName(), d.CRD)
			}
		}
	}
	for _, in := range uses.Installs {
		if in.CRD != "" {
			add(in.PackageKind(), in.ShortName(), in.CRD)
		}
	}
	for _, use := range uses.Kinds {
		users = append(users, kindUser{use.Object.PackageKind(), use.Object.ShortName(), use.Kind, true})
	}
	return users
}

// usesOf returns the objects of the first generation that use a package. It adds a warning if they cannot be read.
func (pl *planning) usesOf(ctx context.Context, live v1.Package, out *Plan) frontend.Uses {
	if live.PackageKind() != v1.ProviderKind {
		return frontend.Uses{}
	}
	uses, err := pl.Frontend.Uses(ctx, pl.Cluster, pl.Reader)
	if err != nil {
		out.warn(fmt.Sprintf("The install objects and Packages that use the package are not known: %v.", err))
	}
	uses.Installs = slices.DeleteFunc(uses.Installs, func(in *frontend.Object) bool {
		isMaintainer := out.Maintained != nil && live.GetAnnotations()[state.AnnotationInstalledBy] == state.InstalledBy(in)
		return in.Provider != live.GetName() || isMaintainer
	})
	uses.Kinds = slices.DeleteFunc(uses.Kinds, func(k frontend.UsedKind) bool { return k.Provider != live.GetName() })
	return uses
}

// contentsWith returns the content of a package that is planned, and of the installed packages that do not work yet.
func (pl *planning) contentsWith(s *clusterState, p v1.Package, pkg *xpkg.Package) state.KnownContents {
	waiting := &waitingContents{packages: pl.packages(), cluster: s, known: map[string]*xpkg.Package{}}
	for name, content := range s.unlisted {
		waiting.known[name] = content.pkg
	}
	return state.KnownContents{
		ContentReader: waiting,
		Known:         map[string]*xpkg.Package{oci.RepositoryName(p.PackageSpec().Package): pkg},
	}
}

// waitingContents reads the content of packages that are not healthy, or that the Lock does not list. A package whose
// content cannot be read requires and defines nothing.
type waitingContents struct {
	packages state.Packages
	cluster  *clusterState
	// known are the contents that were read, by the names of their packages.
	known map[string]*xpkg.Package
}

// Requires implements [state.ContentReader]. Of the packages that are not healthy, it reads those that wait for others.
func (c *waitingContents) Requires(ctx context.Context, n graph.Node) []dependency.KindRef {
	waits := []string{
		provide.ErrNoProvider.Name, graph.ErrDependencyComing.Name, graph.ErrDependencyMissing.Name, solver.ErrCycle.Name,
	}
	p := c.find(n)
	if p == nil || !slices.Contains(waits, string(p.GetCondition(v1.TypeReady).Reason)) && c.cluster.isListed(p) {
		return nil
	}
	if pkg := c.read(ctx, p, n); pkg != nil {
		return pkg.Meta.Kinds
	}
	return nil
}

// Defines implements [state.ContentReader].
func (c *waitingContents) Defines(ctx context.Context, n graph.Node, kind dependency.KindRef) bool {
	p := c.find(n)
	if p == nil || p.GetCondition(v1.TypeHealthy).Status == corev1.ConditionTrue && c.cluster.isListed(p) {
		return false
	}
	pkg := c.read(ctx, p, n)
	return pkg != nil && provide.DefinesKind(pkg, kind)
}

func (c *waitingContents) find(n graph.Node) v1.Package {
	i := slices.IndexFunc(
		c.cluster.others, func(p v1.Package) bool { return p.PackageKind() == n.Kind && p.GetName() == n.Name },
	)
	if i < 0 {
		return nil
	}
	return c.cluster.others[i]
}

// read returns the content of a package, or nil.
func (c *waitingContents) read(ctx context.Context, p v1.Package, n graph.Node) *xpkg.Package {
	name := holderName(p)
	if pkg, ok := c.known[name]; ok || n.Digest.IsZero() {
		return pkg
	}
	spec := p.PackageSpec()
	origin, _, err := c.packages.Origins.Locate(ctx, n.Reference(), spec.PackagePullSecrets, spec.PackagePullPolicy)
	if err == nil {
		origin.Lenient = revision.LenientContent(p)
		c.known[name], err = c.packages.Read(ctx, origin, n.Digest, n.Reference(), spec.PackagePullPolicy)
	}
	if err != nil {
		c.known[name] = nil
	}
	return c.known[name]
}

// checkCycle fails with DependencyCycle if the planned package depends on itself after changes of other packages.
func (pl *planning) checkCycle(
	ctx context.Context, s *clusterState, p v1.Package, nodes []graph.Node, content oci.Digest,
) (*graph.Graph, error) {
	g := graph.New(state.LinkKinds(ctx, nodes, s.contents), s.place)
	if s.wasHealthyWith(content) {
		return g, nil
	}
	return g, g.CheckCycle(p.PackageKind(), p.GetName())
}
