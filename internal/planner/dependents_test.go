package planner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const leaf = "registry.example.com/leaf"

// asking returns a Provider with a reference.
func asking(name, ref string) v1.Package {
	p := v1.NewPackage(v1.ProviderKind)
	p.SetName(name)
	p.SetGeneration(2)
	p.PackageSpec().Package = ref
	return p
}

// hardening: F13
func TestBreaks(t *testing.T) {
	for name, tc := range map[string]struct {
		// live and to are the references of the leaf now and then; empty is none.
		live, to string
		// back is the version to which the leaf was rolled back.
		back string
		// need is the constraint of the root on the leaf; a question mark makes it
		// optional.
		need           string
		skip, together bool
		want           string
	}{
		"it still fits": {live: leaf + ":v1.0.0", to: leaf + ":v1.1.0", need: "<v2"},
		"it does not fit any more": {live: leaf + ":v1.0.0", to: leaf +
			":v2.0.0", need: "<v2", want: "provider/root needs " + leaf + " <v2, and it would be at v2.0.0"},
		"a digest is in no range": {live: leaf + ":v1.0.0", to: leaf + "@" +
			digestA, need: "<v2", want: "provider/root needs " + leaf + " <v2, and it would be at " + digestA},
		"it did not fit before": {live: leaf + ":v3.0.0", to: leaf + ":v2.0.0", need: "<v2"},
		"it fits, since it was brought back": {live: leaf + ":v3.0.0", back: "v1.0.0", to: leaf +
			":v2.0.0", need: "<v2", want: "provider/root needs " + leaf + " <v2, and it would be at v2.0.0"},
		"it was not there, and does not fit": {to: leaf +
			":v2.0.0", need: "<v2", want: "provider/root needs " + leaf + " <v2, and it would be at v2.0.0"},
		"it was not there, and fits": {to: leaf + ":v1.0.0", need: "<v2"},
		"it goes": {live: leaf +
			":v1.0.0", need: "<v2", want: "provider/root needs " + leaf + " <v2, and it would not be installed"},
		"it goes, and did not fit": {live: leaf + ":v3.0.0", need: "<v2"},
		"it goes to another repository": {live: leaf +
			":v1.0.0", to: "registry.example.com/fork:v1.0.0", need: "<v2", want: "provider/root needs " + leaf +
			" <v2, and it would not be installed"},
		"optional, and it goes": {live: leaf + ":v1.0.0", need: "?<v2"},
		"optional, and it does not fit": {live: leaf + ":v1.0.0", to: leaf +
			":v2.0.0", need: "?<v2", want: "provider/root needs " + leaf + " <v2, and it would be at v2.0.0"},
		"nothing is done about what root needs": {live: leaf + ":v1.0.0", to: leaf +
			":v2.0.0", need: "<v2", skip: true},
		"it goes, and root installs nothing itself": {live: leaf +
			":v1.0.0", need: "<v2", skip: true, want: "provider/root needs " + leaf + " <v2, and it would not be installed"},
		"another repository replaces it, and root does not care": {live: leaf +
			":v1.0.0", to: "registry.example.com/fork:v1.0.0", need: "<v2", skip: true},
		"the root changes with it": {live: leaf + ":v1.0.0", to: leaf + ":v2.0.0", need: "<v2", together: true},
	} {
		t.Run(name, func(t *testing.T) {
			root := asking("root", "registry.example.com/root:v1.0.0")
			root.PackageSpec().SkipDependencyResolution = tc.skip
			entry := v1beta1.LockPackage{Name: "root-1", Source: "registry.example.com/root", Version: "v1.0.0"}
			need := v1beta1.Dependency{Package: leaf, Constraints: strings.TrimPrefix(tc.need, "?")}
			if tc.need[0] == '?' {
				entry.OptionalDependencies = append(entry.OptionalDependencies, need)
			} else {
				entry.Dependencies = append(entry.Dependencies, need)
			}
			s := &clusterState{others: []v1.Package{root}, lock: v1beta1.Lock{Packages: []v1beta1.LockPackage{entry}}}
			if tc.live != "" {
				s.live = asking("leaf", tc.live)
			}
			if tc.back != "" {
				s.live.PackageStatus().Rollback = &v1.Rollback{From: "leaf-3", To: "leaf-1", Generation: 2}
				s.lock.Packages = append(s.lock.Packages, v1beta1.LockPackage{Name: "leaf-1", Source: leaf, Version: tc.back})
				rev := s.live.NewRevision()
				rev.SetName("leaf-1")
				rev.RevisionSpec().Image = leaf + ":" + tc.back
				s.revisions = []v1.PackageRevision{rev}
			}
			pl := (&Planner{}).start(Options{ChangedTogether: map[string]bool{"provider/root": tc.together}})
			nodes, err := pl.nodes(t.Context(), s, func(string) bool { return false })
			if err != nil {
				t.Fatal(err)
			}
			var will *graph.Node
			if tc.to != "" {
				n, _ := graph.NodeFromPackage(asking("leaf", tc.to), nil)
				will, nodes = &n, append(nodes, n)
			}
			p := &Plan{
				Operation: Update, Package: Package{Kind: "Provider", Name: "leaf"},
				Breaks: pl.breaks(s, graph.New(nodes, nil), will),
			}
			var got []string
			for _, b := range p.Breaks {
				got = append(got, b.String())
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, "; ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (p.BreakageError() == nil) != (tc.want == "") ||
				tc.want != "" && !errors.Is(p.BreakageError(), ErrDependentsBroken) {
				t.Errorf("it fails with %v", p.BreakageError())
			}
		})
	}
}

// The packages that an uninstall removes together are all that require it, directly or through others, and those that
// the same operation deletes, dependents first.
func TestRemovedTogether(t *testing.T) {
	at := func(name string) string { return "registry.example.com/" + name }
	requires := map[string][]string{
		"middle": {"?leaf"}, "mid1": {"leaf"}, "mid2": {"leaf"}, "top1": {"mid1"}, "top2": {"mid2", "mid1"},
		"other": {"middle"}, "above": {"beside"},
	}
	var s clusterState
	for _, name := range []string{"above", "beside", "leaf", "mid1", "mid2", "middle", "other", "top1", "top2"} {
		entry := v1beta1.LockPackage{Name: name + "-1", Source: at(name), Version: "v1.0.0"}
		for _, need := range requires[name] {
			if on, optional := strings.CutPrefix(need, "?"); optional {
				entry.OptionalDependencies = append(entry.OptionalDependencies, v1beta1.Dependency{Package: at(on)})
			} else {
				entry.Dependencies = append(entry.Dependencies, v1beta1.Dependency{Package: at(on)})
			}
		}
		s.lock.Packages = append(s.lock.Packages, entry)
		if x := asking(name, at(name)+":v1.0.0"); name == "leaf" {
			s.live = x
		} else {
			s.others = append(s.others, x)
		}
	}
	pl := (&Planner{}).start(Options{})
	nodes, err := pl.nodes(t.Context(), &s, func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	out := &Plan{
		Operation: Uninstall, Package: Package{Kind: "Provider", Name: "leaf"},
		Breaks: pl.breaks(&s, graph.New(nodes, nil), nil),
	}
	for want, also := range map[string][]v1.Package{
		"top1 top2 mid1 mid2 leaf":              nil,
		"top1 top2 mid1 mid2 above beside leaf": {asking("beside", at("beside")+":v1.0.0")},
		// It was removed by an earlier step.
		"top1 top2 mid1 mid2 gone leaf": {asking("gone", at("gone")+":v1.0.0")},
	} {
		pl.RemovedTogether = also
		g, removed := pl.removedTogether(&s, nodes, out)
		var got []string
		for _, n := range g.WithDependents(removed...) {
			got = append(got, n.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAPackageIsBrokenOnceForAllOfItsKinds(t *testing.T) {
	root := asking("root", "registry.example.com/root:v1.0.0")
	graph.SetKindProviders(root, []dependency.Dependency{
		{Package: leaf, Constraint: ">=v1.0.0", CRD: "Spring.reef.test/v1"},
		{Package: leaf, Constraint: ">=v1.0.0", CRD: "Tide.reef.test/v1"}, {Package: leaf, CRD: "Wave.reef.test/v1"},
	})
	s := &clusterState{others: []v1.Package{root}, live: asking("leaf", leaf+":v1.0.0")}
	pl := (&Planner{}).start(Options{})
	nodes, err := pl.nodes(t.Context(), s, func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	p := &Plan{
		Operation: Uninstall, Package: Package{Kind: "Provider", Name: "leaf"},
		Breaks: pl.breaks(s, graph.New(nodes, nil), nil),
	}
	want := "provider/root needs " + leaf +
		" >=v1.0.0 for Spring.reef.test/v1 and Tide.reef.test/v1 and Wave.reef.test/v1, and it would not be installed"
	if len(p.Breaks) != 1 || p.Breaks[0].String() != want {
		t.Errorf("got %v, want %s", p.Breaks, want)
	}

	// All install objects that use the Provider are listed, too, except for those that are listed as users of a kind.
	var installs []*frontend.Object
	for _, kind := range []string{packagesv1alpha1.PackageInstallKind, packagesv1alpha1.ClusterPackageInstallKind} {
		in := packagesv1alpha1.NewInstall(kind)
		in.SetNamespace("team")
		in.SetName("leaf")
		in.InstallStatus().Provider = "leaf"
		installs = append(installs, firstgen.Frontend().Of(in))
	}
	p.Breaks = append(p.Breaks, Broken{
		Kind: packagesv1alpha1.ClusterPackageInstallKind, Name: "team/leaf", Requires: leaf,
		Kinds: []string{"Tide.reef.test/v1"},
	})
	pl.lostProvider(installs, leaf, p)
	// So are the Packages of users that use a kind of it.
	byUser := &packagesv1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "tides"}}
	tide := dependency.KindRef{Name: "Tide", Group: "reef.test", Version: "v1"}
	used := frontend.UsedKind{Object: firstgen.Frontend().Of(byUser), Kind: tide, Provider: "leaf"}
	uses := frontend.Uses{Installs: installs, Kinds: []frontend.UsedKind{used}}
	byKind := kindUser{packagesv1alpha1.PackageKind, "team/tides", tide, true}
	if got := kindUsers(s, s.live, frontend.Uses{Kinds: uses.Kinds}); !slices.Contains(got, byKind) {
		t.Errorf("the users of kinds are %v", got)
	}
	p.addLostKind(Broken{Kind: packagesv1alpha1.PackageKind, Name: "team/tides", Requires: leaf}, tide)
	p.Remedy = pl.uninstallRemedy(t.Context(), s, nodes, uses, p)
	if n := len(p.Breaks); n != 4 ||
		p.Breaks[2].String() != "packageinstall/team/leaf needs "+leaf+", and it would not be installed" {
		t.Errorf("with install objects: %v", p.Breaks)
	}
	err = p.BreakageError()
	for _, want := range []string{
		"breaks 1 package and 3 objects of the first generation",
		"`kubectl delete --namespace team packages.packages.crossplane.io tides`",
		"`xpkg uninstall provider/root provider/leaf`",
		"`kubectl delete --namespace team packageinstalls.packages.crossplane.io leaf`",
	} {
		if text := errcode.Message(err); !strings.Contains(text, want) {
			t.Errorf("there is no %q in %s", want, text)
		}
	}
}

// An object whose other owners are deleted, or are removed by an earlier step, is deleted with the package and not
// left.
func TestAnObjectGoesWithItsLastOwner(t *testing.T) {
	deleting := asking("deleting", "registry.example.com/deleting:v1.0.0")
	now := metav1.Now()
	deleting.SetDeletionTimestamp(&now)
	s := &clusterState{live: asking("last", leaf+":v1.0.0"), others: []v1.Package{
		asking("stays", "registry.example.com/stays:v1.0.0"), deleting,
	}}
	owner := func(kind, name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "pkg.crossplane.io/v1", Kind: kind, Name: name}
	}
	former := owner("Provider", "stays")
	former.UID = "of the package before it was created again"
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	newRevision := func(name, of string) *v1.ProviderRevision {
		return &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelPackage: of}}}
	}
	pl := (&Planner{Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		newRevision("stays-1", "stays"), newRevision("removed-1", "removed"),
	).Build()}).start(Options{})
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other"}
	for name, tc := range map[string]struct {
		owners []metav1.OwnerReference
		want   plan.Action
	}{
		"alone":         {nil, plan.Delete},
		"another":       {[]metav1.OwnerReference{owner("Provider", "stays")}, plan.Leave},
		"deleting":      {[]metav1.OwnerReference{owner("Provider", "deleting")}, plan.Delete},
		"removed":       {[]metav1.OwnerReference{owner("Provider", "removed"), owner("Function", "stays")}, plan.Delete},
		"not a package": {[]metav1.OwnerReference{other}, plan.Leave},
		"former one":    {[]metav1.OwnerReference{former}, plan.Delete},
		"a revision":    {[]metav1.OwnerReference{owner("ProviderRevision", "stays-1")}, plan.Leave},
		"of a removed":  {[]metav1.OwnerReference{owner("ProviderRevision", "removed-1")}, plan.Delete},
		"collected":     {[]metav1.OwnerReference{owner("ProviderRevision", "stays-0")}, plan.Delete},
	} {
		t.Run(name, func(t *testing.T) {
			ref := plan.Ref{Kind: plan.DefinitionKind, Name: "masts.a.test"}
			live := map[plan.Ref]plan.Live{ref: {Ref: ref, Owners: append(tc.owners, owner("Provider", "last"))}}
			who := revision.Requester(s.live, s.live.NewRevision(), nil)
			if err := pl.dropDeletedOwners(t.Context(), s, who, live); err != nil {
				t.Fatal(err)
			}
			got := plan.Uninstall(live, who)
			if len(got.Changes) != 1 || got.Changes[0].Action != tc.want {
				t.Errorf("got %+v, want %s", got.Changes, tc.want)
			}
		})
	}
}

// The plan of an uninstall has an object once that a revision lists in one version of its API, and the cluster in
// another one.
func TestAnObjectOfTwoVersionsIsDeletedOnce(t *testing.T) {
	p := asking("yard", leaf+":v1.0.0")
	p.SetUID("yard")
	listed := plan.Ref{
		APIVersion: "apiextensions.crossplane.io/v2", Kind: "CompositeResourceDefinition", Name: "docks.a.test",
	}
	found := listed
	found.APIVersion = "apiextensions.crossplane.io/v1"
	rev := p.NewRevision()
	rev.RevisionStatus().
		ObjectRefs = []v1.TypedReference{{APIVersion: listed.APIVersion, Kind: listed.Kind, Name: listed.Name}}
	owners := []metav1.OwnerReference{{APIVersion: "pkg.crossplane.io/v1", Kind: "Provider", Name: "yard", UID: "yard"}}
	pl := (&Planner{Cluster: owningCluster{owned: apply.Owned{found: owners}}}).start(Options{})
	out := &Plan{}
	if err := pl.recordDeletions(
		t.Context(), &clusterState{live: p, revisions: []v1.PackageRevision{rev}}, out,
	); err != nil {
		t.Fatal(err)
	}
	if len(out.Objects.Changes) != 1 || out.Objects.Changes[0].Ref != listed {
		t.Errorf("got %v, want the deletion of %v", out.Objects.Changes, listed)
	}
}

// owningCluster is a cluster in which all objects have the owners of the owned ones.
type owningCluster struct {
	Cluster
	owned apply.Owned
}

func (c owningCluster) OwnedContent(context.Context) (owned apply.Owned, unlisted []plan.Ref, err error) {
	return c.owned, nil, nil
}

func (c owningCluster) Metadata(_ context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error) {
	live := map[plan.Ref]plan.Live{}
	for _, ref := range refs {
		for _, owners := range c.owned {
			live[ref] = plan.Live{Ref: ref, Owners: owners}
		}
	}
	return live, nil
}

func (owningCluster) CustomResources(context.Context, []string, bool) ([]CustomResources, error) {
	return nil, nil
}
