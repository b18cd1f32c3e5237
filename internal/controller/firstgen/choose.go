package firstgen

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const (
	// sourceAge is the age of the state of the sources up to which the registries of indexes are not asked.
	sourceAge = time.Minute
	// refreshedAge is the same before an undecided selection is reported. It limits the requests for many install objects.
	refreshedAge = 5 * time.Second
)

// choose selects a package for a CRD in the sources, which can be installed already. It writes nothing, and fails with
// AmbiguousKind or NoProvider unless there is no doubt, also after the sources were read again.
func (b *Base) choose(
	ctx context.Context, in packagesv1alpha1.Install, crd firstgen.CRDReference, own *v1.Provider,
) (provide.Candidate, error) {
	selected, err := b.chooseAt(ctx, in, crd, own, sourceAge)
	if !errors.Is(err, provide.ErrNoProvider) && !errors.Is(err, provide.ErrAmbiguous) {
		return selected, err
	}
	return b.chooseAt(ctx, in, crd, own, refreshedAge)
}

// chooseAt selects a package for a CRD in a state of the sources that is at most maxAge old.
func (b *Base) chooseAt(
	ctx context.Context, in packagesv1alpha1.Install, crd firstgen.CRDReference, own *v1.Provider, maxAge time.Duration,
) (provide.Candidate, error) {
	var sources []provide.Source
	if b.Sources != nil {
		var err error
		if sources, err = b.Sources(ctx, maxAge); err != nil {
			return provide.Candidate{}, err
		}
	}
	kind := kindRef(crd)
	if len(sources) == 0 {
		return provide.Candidate{}, withoutSources(crd)
	}
	finder := &provide.Finder{
		Sources: sources,
		Command: func(_ dependency.KindRef, c provide.Candidate) string { return annotateCommand(in, kind, c) },
	}
	if b.Crossplane != nil {
		finder.Crossplane = b.Crossplane.Constraints
	}
	finder.Held = func(ctx context.Context, group string) (map[string]string, error) {
		return state.GroupHolders(
			ctx, b.Kinds, group, func(kind, name string) string { return b.API.RepositoryOf(ctx, kind, name) },
		)
	}
	installed := b.installed(ctx, own)
	r, err := rankOne(ctx, finder, provide.Request{
		Kind: kind, Present: installed.repositories, Holders: installed.holders,
	})
	if err != nil {
		return provide.Candidate{}, err
	}
	if err := finder.Err(ctx, r); err != nil {
		return provide.Candidate{}, err
	}
	first := r.Order[0]
	if first.Type != v1.ProviderKind {
		return provide.Candidate{}, provide.ErrNoProvider.New(
			nil, "%s is provided by the %s %s, and this object installs Providers only", kind, first.Type, first.Ref(),
		).
			WithDo("Run `%s`.", provide.InstallCommand(first))
	}
	return first, nil
}

// withoutSources returns the error of a manager that knows no packages.
func withoutSources(crd firstgen.CRDReference) error {
	first := "Run `xpkg install --kind " + wording.ShellWord(kindRef(crd).String()) + "`"
	if kindRef(crd).IsAll() {
		first = "Install a package with kinds of the group " + crd.Group + " by its name"
	}
	return provide.ErrNoProvider.New(nil, "no installed Provider has the CRD %s, and the manager has no index", crd).
		WithDo(
			"%s, set spec.package instead of spec.crd, or start the manager with an index: `xpkg up` and `xpkg manager` have the flag --index.",
			first,
		)
}

// rankOne ranks the candidates for a kind, or for all kinds of a group. An object installs one package, so that the
// ranking of a group whose kinds are in several packages is not decided.
func rankOne(ctx context.Context, finder *provide.Finder, q provide.Request) (provide.Ranking, error) {
	all, err := finder.RankTogether(ctx, []dependency.KindRef{q.Kind}, q)
	if err != nil {
		return provide.Ranking{}, err
	}
	out := provide.Ranking{Kind: q.Kind, Decided: all[0].Decided}
	for _, r := range all {
		if r.Decided == "" {
			return r, nil
		}
		first := r.Order[0]
		if !slices.ContainsFunc(out.Order, func(c provide.Candidate) bool { return c.Repository == first.Repository }) {
			out.Order = append(out.Order, first)
		}
	}
	if len(out.Order) == 1 {
		return out, nil
	}
	out.Decided = ""
	for i := range out.Order {
		out.Order[i].Kind = q.Kind.Name // Each of them provides some kinds of the group.
	}
	return out, nil
}

// annotateCommand returns the command that records the selection of a candidate on an install object.
func annotateCommand(in packagesv1alpha1.Install, kind dependency.KindRef, c provide.Candidate) string {
	record, err := json.Marshal([]dependency.Dependency{{
		Package: c.Repository, Constraint: c.Version, CRD: kind.String(),
	}})
	if err != nil {
		return provide.InstallCommand(c) // Dependencies are always valid JSON.
	}
	annotation := wording.ShellWord(graph.AnnotationKindProviders + "=" + string(record))
	return Frontend().Of(in).Command("annotate --overwrite", annotation)
}

// installed are the packages of the cluster.
type installed struct {
	repositories map[string]bool
	// holders maps the names of CRDs to the repositories of the packages that hold them.
	holders map[string]string
}

// installed returns the packages of the cluster except the own Provider of an install object.
func (b *Base) installed(ctx context.Context, own *v1.Provider) installed {
	out := installed{map[string]bool{}, map[string]string{}}
	for _, kind := range v1.PackageKinds() {
		for _, rev := range watch.Revisions(ctx, b.API.Client, kind) {
			if !revision.IsActive(rev) || own != nil && kind == v1.ProviderKind && rev.GetLabels()[v1.LabelPackage] == own.Name {
				continue
			}
			repository := oci.RepositoryName(rev.RevisionSpec().Image)
			out.repositories[repository] = true
			for _, o := range revision.Objects(rev) {
				if o.Kind == plan.DefinitionKind || o.Kind == "CompositeResourceDefinition" {
					out.holders[o.Name] = repository
				}
			}
		}
	}
	return out
}
