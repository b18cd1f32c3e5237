package frontend_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// servedKinds are the kinds of a group by the names of the Providers that hold them.
type servedKinds map[string][]apply.ServedKind

func (s servedKinds) Kinds(context.Context, string) ([]apply.ServedKind, error) {
	var out []apply.ServedKind
	for _, name := range []string{"parts", "other"} {
		out = append(out, s[name]...)
	}
	return out, nil
}

func (s servedKinds) Metadata(_ context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error) {
	out := map[plan.Ref]plan.Live{}
	for name, all := range s {
		for _, k := range all {
			for _, ref := range refs {
				if ref.Name == k.Plural+".group.example.org" {
					out[ref] = plan.Live{Owners: []metav1.OwnerReference{{
						APIVersion: "pkg.crossplane.io/v1", Kind: "Provider", Name: name, Controller: new(true),
					}}}
				}
			}
		}
	}
	return out, nil
}

// firstGenerationKinds are servedKinds in a cluster that also serves the API of the first generation.
type firstGenerationKinds struct{ servedKinds }

func (k firstGenerationKinds) Kinds(ctx context.Context, group string) ([]apply.ServedKind, error) {
	switch group {
	case packagesv1alpha1.Group:
		var out []apply.ServedKind
		for _, kind := range append(packagesv1alpha1.Kinds(), packagesv1alpha1.StackDefinitionKind) {
			out = append(out, apply.ServedKind{Kind: kind})
		}
		return out, nil
	case "group.example.org":
		return k.servedKinds.Kinds(ctx, group)
	}
	return nil, nil
}

// A Package of a user uses the Providers that hold the kinds that it defines and depends on. The record of an install
// object does not: its install object names the Provider.
func TestPackagesOfUsersUseTheProvidersOfTheirKinds(t *testing.T) {
	kinds := firstGenerationKinds{servedKinds{
		"parts": {{Kind: "Boat", Plural: "boats", Versions: []string{"v1"}}, {Kind: "Oar", Plural: "oars", Versions: []string{
			"v1",
		}}},
		"other": {{Kind: "Raft", Plural: "rafts", Versions: []string{"v1"}}},
	}}
	const group = "group.example.org/"
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		kinds     []packagesv1alpha1.Kind
		dependsOn []string
		record    bool
		want      []string
	}{
		"a kind": {kinds: []packagesv1alpha1.Kind{{APIVersion: group + "v1", Kind: "Boat"}}, want: []string{
			"Boat.group.example.org/v1 parts",
		}},
		"a kind, twice": {
			kinds: []packagesv1alpha1.Kind{{APIVersion: group + "v1", Kind: "Boat"}, {APIVersion: group + "v1", Kind: "Boat"}},
			want:  []string{"Boat.group.example.org/v1 parts"},
		},
		"kinds of two Providers": {
			kinds: []packagesv1alpha1.Kind{{APIVersion: group + "v1", Kind: "Boat"}, {APIVersion: group + "v1", Kind: "Raft"}},
			want:  []string{"Boat.group.example.org/v1 parts", "Raft.group.example.org/v1 other"},
		},
		"a version not served":     {kinds: []packagesv1alpha1.Kind{{APIVersion: group + "v2", Kind: "Boat"}}},
		"a kind of the API server": {kinds: []packagesv1alpha1.Kind{{APIVersion: "v1", Kind: "Pod"}}},
		"an unknown kind":          {kinds: []packagesv1alpha1.Kind{{APIVersion: "unknown.example.org/v1", Kind: "Boat"}}},
		"a dependency": {dependsOn: []string{"rafts.group.example.org/v1"}, want: []string{
			"rafts.group.example.org/v1 other",
		}},
		"a group": {dependsOn: []string{"*.group.example.org/v1"}, want: []string{
			"*.group.example.org/v1 parts", "*.group.example.org/v1 other",
		}},
		"an invalid dependency": {dependsOn: []string{"*"}},
		"a record":              {kinds: []packagesv1alpha1.Kind{{APIVersion: group + "v1", Kind: "Boat"}}, record: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &packagesv1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mine"}}
			p.Spec.CRDs = tt.kinds
			for _, crd := range tt.dependsOn {
				p.Spec.DependsOn = append(p.Spec.DependsOn, packagesv1alpha1.InstallSpec{CRD: crd})
			}
			if tt.record {
				p.OwnerReferences = []metav1.OwnerReference{{Kind: packagesv1alpha1.PackageInstallKind, Name: "mine"}}
			}
			in := packagesv1alpha1.NewInstall(packagesv1alpha1.PackageInstallKind)
			in.SetNamespace("team")
			in.SetName("installed")
			in.InstallStatus().Provider = "installed"
			uses, err := firstgen.Frontend().
				Uses(t.Context(), kinds, fake.NewClientBuilder().WithScheme(scheme).WithObjects(p, in.(client.Object)).Build())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, use := range uses.Kinds {
				got = append(got, use.Kind.String()+" "+use.Provider)
				if !uses.Of(use.Provider) {
					t.Errorf("the Provider %s is not used", use.Provider)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if !uses.Of("installed") || uses.Of("free") {
				t.Error("the Provider of the install object is not the one that it uses")
			}
		})
	}
}
