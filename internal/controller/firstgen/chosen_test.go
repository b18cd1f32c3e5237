package firstgen

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/kube"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

const thingCRD = "things.a.example.org/v1"

// knownPackages is a source with fixed candidates.
type knownPackages []provide.Candidate

func (s knownPackages) Candidates(kind dependency.KindRef) []provide.Candidate {
	var out []provide.Candidate
	for _, c := range s {
		if kind.Matches(c.Group, c.Kind, c.Plural) {
			out = append(out, c)
		}
	}
	return out
}

func (s knownPackages) Group(group string) []provide.Candidate {
	return s.Candidates(dependency.KindRef{Name: dependency.AllKinds, Group: group})
}

func (knownPackages) Kinds() []dependency.KindRef { return nil }

func thingFrom(repository, packageKind string) provide.Candidate {
	return provide.Candidate{
		Repository: repository, Version: "v1.0.0", Kind: "Thing", Plural: "things", Group: "a.example.org",
		Served: []string{"v1"}, Type: packageKind, Cost: 1,
	}
}

// holder returns a Provider with an active revision that has the CRD.
func holder(name, reference, by string) []client.Object {
	p := &v1.Provider{}
	p.Name, p.Spec.Package = name, reference
	if by != "" {
		p.Annotations = map[string]string{state.AnnotationInstalledBy: by, graph.AnnotationProvides: thingCRD}
	}
	rev := v1.NewPackage(v1.ProviderKind).NewRevision()
	rev.SetName(name + "-1")
	rev.SetLabels(map[string]string{v1.LabelPackage: name})
	rev.RevisionSpec().DesiredState, rev.RevisionSpec().Image = v1.RevisionActive, reference
	rev.RevisionStatus().ObjectRefs = []v1.TypedReference{{
		APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "things.a.example.org",
	}}
	return []client.Object{p, rev.(client.Object)}
}

// apiWith returns access to a cluster with objects.
func apiWith(scheme *runtime.Scheme, objects ...client.Object) kube.API {
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return kube.API{Client: c, Live: c}
}

// noKinds is a cluster that serves no kinds.
type noKinds struct{}

func (noKinds) Kinds(context.Context, string) ([]apply.ServedKind, error) { return nil, nil }

func (noKinds) Metadata(context.Context, []plan.Ref) (map[plan.Ref]plan.Live, error) { return nil, nil }

func TestThePackageOfAKindIsChosenOnlyWithoutDoubt(t *testing.T) {
	const one, other = "r.example.org/one/thing", "r.example.org/other/thing"
	record := func(repository, constraint string) map[string]string {
		return map[string]string{graph.AnnotationKindProviders: `[{"package":"` + repository + `","constraint":"` +
			constraint + `","crd":"` + thingCRD + `"}]`}
	}
	before := &packagesv1alpha1.ChosenPackage{CRD: thingCRD, Package: one + ":v0.9.0"}
	both := knownPackages{thingFrom(one, "Provider"), thingFrom(other, "Provider")}
	for name, tc := range map[string]struct {
		objects     []client.Object
		source      knownPackages
		annotations map[string]string
		recorded    *packagesv1alpha1.ChosenPackage

		ref, provider string
		code          errcode.Code
		command       string
	}{
		"no source":    {code: provide.ErrNoProvider, command: "`xpkg install --kind " + thingCRD + "`"},
		"unknown kind": {source: knownPackages{}, code: provide.ErrNoProvider},
		"only package": {source: both[:1], ref: one + ":v1.0.0"},
		"only a Configuration": {
			source: knownPackages{thingFrom(one, "Configuration")}, code: provide.ErrNoProvider,
			command: "`xpkg install configuration " + one + ":v1.0.0`",
		},
		"two packages": {
			source: both, code: provide.ErrAmbiguous,
			command: "`kubectl annotate --overwrite --namespace team clusterpackageinstalls.packages.crossplane.io mine 'xpkg.dev/kind-providers=[{\"package\":\"" +
				other + "\",\"constraint\":\"v1.0.0\",\"crd\":\"" + thingCRD + "\"}]'`",
		},
		"annotation":              {source: both, annotations: record(other, "v2.0.0"), ref: other + ":v2.0.0"},
		"annotation with a range": {source: both, annotations: record(other, ">=v1"), code: ErrReference},
		"annotation after another": {source: both, annotations: record(other, "v2.0.0"), recorded: before, ref: other +
			":v2.0.0"},
		"recorded": {source: both, recorded: before, ref: one + ":v0.9.0"},
		"recorded for another kind": {
			source: both[1:], recorded: &packagesv1alpha1.ChosenPackage{CRD: "others.a.example.org/v1", Package: one},
			ref: other + ":v1.0.0",
		},
		"installed": {
			source: both[:1], objects: holder("installed", other+":v3.0.0", ""), provider: "installed",
		},
		"installed later than recorded": {
			source: both, recorded: before, objects: holder("installed", other+":v3.0.0", ""), ref: one + ":v0.9.0",
		},
		"installed in another version": {
			source: both, recorded: before, objects: holder("installed", one+":v3.0.0", ""), provider: "installed",
		},
		"installed without a revision": {
			source: both[:1], objects: holder("installing", one+":v1.0.0", "")[:1], provider: "installing",
		},
		"own Provider without a status": {
			source: both, objects: holder("team-mine", one+":v0.9.0", "ClusterPackageInstall/team/mine"), ref: one + ":v0.9.0",
		},
		"another owner of the Provider": {
			source: both, objects: holder("team-mine", one+":v0.9.0", "ClusterPackageInstall/other/mine"), provider: "team-mine",
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := errors.Join(v1.AddToScheme(scheme), packagesv1alpha1.AddToScheme(scheme)); err != nil {
				t.Fatal(err)
			}
			b := &Base{API: apiWith(scheme, tc.objects...), Kinds: noKinds{}, Namespace: "crossplane-system"}
			if tc.source != nil {
				b.Sources = func(context.Context, time.Duration) ([]provide.Source, error) {
					return []provide.Source{tc.source}, nil
				}
			}
			in := packagesv1alpha1.NewInstall(packagesv1alpha1.ClusterPackageInstallKind)
			in.SetNamespace("team")
			in.SetName("mine")
			in.SetAnnotations(tc.annotations)
			in.InstallSpec().CRD, in.InstallStatus().ChosenPackage = thingCRD, tc.recorded
			ref, provider, err := b.chosen(t.Context(), in)
			if tc.code.Name != "" {
				if e := errcode.From(err); err == nil || e.Code.Name != tc.code.Name || !strings.Contains(e.Do, tc.command) {
					t.Fatalf("error %v, want %s with %s", err, tc.code.Name, tc.command)
				}
				return
			}
			if err != nil || provider != tc.provider || tc.ref != "" && ref.String() != tc.ref {
				t.Fatalf("%s in the Provider %q (%v), want %s in %q", ref, provider, err, tc.ref, tc.provider)
			}
			if c := in.InstallStatus().ChosenPackage; tc.ref != "" && (c == nil || c.CRD != thingCRD || c.Package != tc.ref) {
				t.Errorf("the recorded choice is %+v", c)
			}
		})
	}
}

// A package that does not work with the Crossplane that runs is not chosen, and the condition has the reason.
func TestThePackageOfAKindWorksWithTheCrossplaneThatRuns(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1.AddToScheme(scheme), packagesv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	content, err := xpkg.Read([]byte(`apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: thing}
spec: {crossplane: {version: ">=v2.0.0"}}
`+publish.Definition("a.example.org", "Thing", "one")), xpkg.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	source := provide.Packages{All: []provide.Package{{
		Repository: "r.example.org/one/thing", Version: "v1.0.0", Content: content,
	}}}
	in := packagesv1alpha1.NewInstall(packagesv1alpha1.ClusterPackageInstallKind)
	in.InstallSpec().CRD = thingCRD
	for running, want := range map[string]string{
		"v2.1.0": "", "v1.20.0": "r.example.org/one/thing: its version v1.0.0 requires Crossplane >=v2.0.0",
	} {
		b := &Base{
			API: apiWith(scheme), Kinds: noKinds{}, Crossplane: &crossplane.Checker{Configured: running},
			Sources: func(context.Context, time.Duration) ([]provide.Source, error) { return []provide.Source{source}, nil },
		}
		in.InstallStatus().ChosenPackage = nil
		if _, _, err := b.chosen(t.Context(), in); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("with Crossplane %s: %v", running, err)
		}
	}
}

// An object for all kinds of a group installs one package, which has all of them.
func TestAllKindsOfAGroupAreInstalledFromOnePackage(t *testing.T) {
	const all, small, other = "r.example.org/one/all", "r.example.org/one/small", "r.example.org/one/other"
	provides := func(repository, kind string, cost int) provide.Candidate {
		c := thingFrom(repository, "Provider")
		c.Kind, c.Plural, c.Cost, c.OwnsGroup = kind, strings.ToLower(kind)+"s", cost, true
		return c
	}
	for name, tc := range map[string]struct {
		source knownPackages
		ref    string
		code   errcode.Code
		advice string
	}{
		"one package": {
			source: knownPackages{provides(small, "Thing", 1), provides(all, "Thing", 2), provides(all, "Other", 2)},
			ref:    all + ":v1.0.0",
		},
		"the kinds of two packages": {
			source: knownPackages{provides(small, "Thing", 1), provides(other, "Other", 1)}, code: provide.ErrAmbiguous,
			advice: "\"package\":\"" + other + "\"",
		},
		"no source": {
			code:   provide.ErrNoProvider,
			advice: "Install a package with kinds of the group a.example.org by its name, set spec.package",
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := errors.Join(v1.AddToScheme(scheme), packagesv1alpha1.AddToScheme(scheme)); err != nil {
				t.Fatal(err)
			}
			b := &Base{API: apiWith(scheme), Kinds: noKinds{}, Namespace: "crossplane-system"}
			if tc.source != nil {
				b.Sources = func(context.Context, time.Duration) ([]provide.Source, error) {
					return []provide.Source{tc.source}, nil
				}
			}
			in := packagesv1alpha1.NewInstall(packagesv1alpha1.ClusterPackageInstallKind)
			in.SetNamespace("team")
			in.SetName("mine")
			in.InstallSpec().CRD = "*.a.example.org/v1"
			ref, _, err := b.chosen(t.Context(), in)
			if tc.code.Name == "" {
				if err != nil || ref.String() != tc.ref {
					t.Errorf("%s (%v), want %s", ref, err, tc.ref)
				}
				return
			}
			if !errors.Is(err, tc.code) || !strings.Contains(errcode.From(err).Do, tc.advice) {
				t.Errorf("error %v, want %s with %s", errcode.Message(err), tc.code.Name, tc.advice)
			}
		})
	}
}

// A selection that is undecided in a recent state of the sources is tried once more in a new one before it is reported.
func TestAnUndecidedSelectionReadsTheSourcesAgain(t *testing.T) {
	const one, two = "r.example.org/one/thing", "r.example.org/two/thing"
	scheme := runtime.NewScheme()
	if err := errors.Join(v1.AddToScheme(scheme), packagesv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	owned := thingFrom(one, "Provider")
	owned.OwnsGroup = true
	for name, tc := range map[string]struct {
		recent, refreshed knownPackages
		want              errcode.Code
		reads             int
	}{
		"decided at once": {recent: knownPackages{owned}, reads: 1},
		"absent before":   {recent: knownPackages{}, refreshed: knownPackages{owned}, reads: 2},
		"ambiguous before": {
			recent:    knownPackages{thingFrom(one, "Provider"), thingFrom(two, "Provider")},
			refreshed: knownPackages{owned, thingFrom(two, "Provider")}, reads: 2,
		},
		"absent": {recent: knownPackages{}, refreshed: knownPackages{}, want: provide.ErrNoProvider, reads: 2},
		"ambiguous": {
			recent: knownPackages{}, refreshed: knownPackages{thingFrom(one, "Provider"), thingFrom(two, "Provider")},
			want: provide.ErrAmbiguous, reads: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			b := &Base{API: apiWith(scheme), Kinds: noKinds{}, Namespace: "crossplane-system"}
			b.Sources = func(_ context.Context, maxAge time.Duration) ([]provide.Source, error) {
				reads++
				if maxAge < sourceAge {
					return []provide.Source{tc.refreshed}, nil
				}
				return []provide.Source{tc.recent}, nil
			}
			in := packagesv1alpha1.NewInstall(packagesv1alpha1.ClusterPackageInstallKind)
			in.SetNamespace("team")
			in.SetName("mine")
			in.InstallSpec().CRD = thingCRD
			ref, _, err := b.chosen(t.Context(), in)
			if tc.want.Name == "" && (err != nil || ref.Name() != one) || tc.want.Name != "" && !errors.Is(err, tc.want) ||
				reads != tc.reads {
				t.Errorf("%s (%v) after %d reads", ref, err, reads)
			}
		})
	}
}
