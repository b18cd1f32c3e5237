package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// requiredKindFlag selects the package to install by a kind that it provides.
type requiredKindFlag struct {
	RequiredKind string `name:"kind" placeholder:"KIND" complete:"index-kind" help:"Install the package that provides this kind of custom resources, for example Bucket.s3.aws.upbound.io/v1beta2. If more than one package may be meant, nothing is installed, and the command lists them."`
	// selected is the kind for which a package was selected.
	selected dependency.KindRef
}

// selectProvider sets the package from the kind of --kind. It returns the package that provides the kind already, if
// there is one; nothing is to be installed then.
func (c *installArgs) selectProvider(
	env *terminal.Env, pl *clusterPlanner, all *inventory.Inventory,
) (installed v1.Package, err error) {
	if c.RequiredKind == "" {
		return nil, nil
	}
	if c.Ref != "" || c.Kind != "" {
		return nil, terminal.ErrUsage.New(nil, "a package and --kind cannot be used together").WithDo("Remove one of them.")
	}
	kind, err := provide.Parse(c.RequiredKind)
	if err != nil {
		return nil, err
	}
	if kind.IsAll() {
		return nil, provide.ErrInvalidKind.New(nil, "--kind names one kind, and %s names all kinds of a group", kind)
	}
	if installed, err := findHolder(env.Context, pl, all, kind); installed != nil || err != nil {
		return installed, err
	}
	return nil, c.chooseProvider(env, pl, all, kind)
}

// findHolder returns the package that provides a kind in the cluster, or nil if the kind is not served, or no package
// contains its CRD any more. It fails if the kind is served in other versions only, if no package holds its CRD, or if
// the package is not healthy.
func findHolder(
	ctx context.Context, pl *clusterPlanner, all *inventory.Inventory, kind dependency.KindRef,
) (v1.Package, error) {
	found, err := state.FindKinds(ctx, pl.Cluster, kind)
	if err != nil {
		return nil, apiserver.Classify(err, "find %s in the cluster", kind)
	}
	if len(found) == 0 {
		return nil, nil
	}
	held := found[0]
	for _, h := range found {
		if h.Serves(kind.Version) {
			held = h
		}
	}
	return checkHolder(all.Named(named(held.PackageKind, held.PackageName)), held, kind)
}

// checkHolder returns the package that holds a kind, which is nil if there is none. It fails if the package does not
// serve the required kind.
func checkHolder(holder v1.Package, held state.HeldKind, kind dependency.KindRef) (v1.Package, error) {
	switch {
	case holder == nil && rbac.Reserved(schema.GroupResource{Group: held.Group, Resource: held.Plural}):
		return nil, provide.ErrKindHeld.New(
			nil, "%s belongs to Kubernetes, Crossplane or the package manager, and no package can define it",
			held.KindRef(kind.Version),
		).
			WithDo("The API server serves the kind: no package is needed.")
	case held.Released:
		return nil, nil // Any package may take it over.
	case holder == nil:
		return nil, provide.ErrKindHeld.New(
			nil, "the API server serves %s already, and no package holds its CRD", held.KindRef(kind.Version),
		).
			WithDo("To let a package adopt the CRD, install the package by its name with the flag --adopt.")
	case !held.Serves(kind.Version):
		return nil, provide.ErrKindHeld.New(
			nil, "%s provides %s in the versions %s, not %s", inventory.ShortName(holder), held.KindRef(""),
			strings.Join(held.Versions, ", "), kind.Version,
		).
			WithDo(
				"Update %s to a version that serves it; `xpkg versions %s` lists the versions.", inventory.ShortName(holder),
				inventory.RepositoryOf(holder),
			)
	case holder.GetCondition(v1.TypeHealthy).Status != corev1.ConditionTrue:
		return nil, provide.ErrProviderDown.New(
			errors.New(holder.GetCondition(v1.TypeHealthy).Message), "%s provides %s, but it is not healthy",
			inventory.ShortName(holder), held.KindRef(kind.Version),
		).
			WithDo("Run `xpkg describe %s`.", inventory.ShortName(holder))
	}
	return holder, nil
}

// named returns a package with a name, or a package that does not exist.
func named(kind, name string) v1.Package {
	p := v1.NewPackage(cmp.Or(kind, v1.ProviderKind))
	p.SetName(name)
	return p
}

// chooseProvider sets the package from the known packages that provide a kind. It fails with AmbiguousKind or
// NoProvider.
func (c *installArgs) chooseProvider(
	env *terminal.Env, pl *clusterPlanner, all *inventory.Inventory, kind dependency.KindRef,
) error {
	q := provide.Request{Kind: kind, Present: map[string]bool{}}
	for _, p := range all.Packages {
		q.Present[inventory.RepositoryOf(p)] = true
	}
	var err error
	if q.Holders, err = heldCRDs(env.Context, pl, all); err != nil {
		return err
	}
	r, err := pl.Kinds.Rank(env.Context, q)
	if err != nil {
		return err
	}
	if err := pl.Kinds.Err(env.Context, r); err != nil {
		return err
	}
	chosen := r.Order[0]
	if q.Present[chosen.Repository] {
		return installedWithout(all.FromRepository(chosen.Repository), r, q.Holders)
	}
	c.Ref, c.Kind, c.selected = chosen.Ref(), inventory.Kind(chosen.Type), kind
	fmt.Fprintf(env.Stderr,
		"note: %s\n", terminal.Safe(fmt.Sprintf("%s is provided by %s of %s (%s); it is selected because %s.%s",
			r.Canonical(), chosen.Ref(), chosen.PublisherText(), wording.Count(chosen.Cost, "kind"), r.Decided,
			c.noteCache(chosen.Source))))
	return nil
}

// installedWithout returns the error for an installed package that is selected for a kind that the API server does not
// serve: its version does not define the kind, or the definition is not established. Holders are the repositories of
// the packages that hold definitions.
func installedWithout(p v1.Package, r provide.Ranking, holders map[string]string) error {
	first := r.Order[0]
	ref, err := oci.ParseReference(p.PackageSpec().Package, oci.ParseOptions{DefaultRegistry: flags.DefaultRegistry})
	// The CRD of a claim has another name than its definition. The version that the source describes defines the claim.
	if holders[first.CRD()] == first.Repository || err == nil && ref.Tag == first.Version && first.Version != "" {
		return provide.NotEstablished(inventory.ShortName(p), r.Canonical())
	}
	return provide.OtherVersion(inventory.ShortName(p), r)
}

// noteCache returns how a package that the package cache contains is installed without its registry.
func (c *installArgs) noteCache(source string) string {
	if source != content.CacheSource || c.PackagePullPolicy == string(corev1.PullNever) {
		return ""
	}
	return " The package cache contains it: to install it without its registry, add --package-pull-policy Never."
}

// heldCRDs returns the repositories of the packages that hold CRDs, by the names of the CRDs.
func heldCRDs(ctx context.Context, pl *clusterPlanner, all *inventory.Inventory) (map[string]string, error) {
	revisions, err := state.ListRevisions(ctx, pl.Reader)
	if err != nil {
		return nil, apiserver.Classify(err, "list revisions")
	}
	out := map[string]string{}
	for _, rev := range revisions {
		p := all.Named(named(rev.PackageKind(), rev.GetLabels()[v1.LabelPackage]))
		if p == nil || !revision.IsActive(rev) {
			continue
		}
		for _, o := range rev.RevisionStatus().ObjectRefs {
			if o.Kind == "CustomResourceDefinition" || o.Kind == "CompositeResourceDefinition" {
				out[o.Name] = inventory.RepositoryOf(p)
			}
		}
	}
	return out, nil
}

// recordKind records the kind for which a package was selected on the package.
func (c *installArgs) recordKind(p v1.Package) {
	if c.selected != (dependency.KindRef{}) {
		p.SetAnnotations(desired.Overlay(p.GetAnnotations(), map[string]string{
			graph.AnnotationProvides: c.selected.String(),
		}))
	}
}
