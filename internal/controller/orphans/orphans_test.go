package orphans

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/apis"
	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// lateCache is a cache that has not seen any revision yet.
type lateCache struct{ client.Client }

func (c lateCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(v1.PackageRevisionList); ok {
		return nil
	}
	return c.Client.List(ctx, list, opts...)
}

// emptyContent has packages without dependencies and without objects.
type emptyContent struct{ state.Content }

func (emptyContent) Resolve(context.Context, fetch.Origin, time.Duration) (oci.Digest, error) {
	return oci.DigestOf(nil), nil
}

func (emptyContent) Read(context.Context, fetch.Origin, oci.Digest, bool) (*xpkg.Package, error) {
	return &xpkg.Package{Meta: xpkg.Meta{Kind: xpkg.Provider}}, nil
}

func (emptyContent) Locate(
	_ context.Context, image string, _ []corev1.LocalObjectReference, _ corev1.PullPolicy,
) (fetch.Origin, imageconfig.Route, error) {
	return fetch.Plain(oci.MustParseReference(image)), imageconfig.Route{Image: image}, nil
}

func (emptyContent) Rewrites(context.Context) (func(string) string, error) {
	return func(repository string) string { return repository }, nil
}

// clusterWithResources has a package's CRD, with custom resources.
type clusterWithResources struct {
	owner  metav1.OwnerReference
	count  int64
	served []apply.ServedKind
}

func (clusterWithResources) Identity(context.Context) (types.UID, error) { return "cluster", nil }

func (c clusterWithResources) Metadata(_ context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error) {
	out := map[plan.Ref]plan.Live{}
	for _, ref := range refs {
		out[ref] = plan.Live{Ref: ref, UID: "crd", ResourceVersion: "1", Owners: []metav1.OwnerReference{c.owner}}
	}
	return out, nil
}

func (clusterWithResources) OwnedContent(context.Context) (owned apply.Owned, unlisted []plan.Ref, err error) {
	return nil, nil, nil
}

func (clusterWithResources) Preflight(_ context.Context, p plan.Plan, _ apply.Content, _ apply.Breaks) (plan.Plan, error) {
	return p, nil
}

func (c clusterWithResources) CustomResources(
	_ context.Context, names []string, _ bool,
) ([]planner.CustomResources, error) {
	var out []planner.CustomResources
	for _, name := range names {
		if c.count > 0 {
			out = append(out, planner.CustomResources{CRD: name, Count: c.count})
		}
	}
	return out, nil
}

func (clusterWithResources) ClusterScoped(context.Context) (map[schema.GroupResource]bool, error) {
	return map[schema.GroupResource]bool{}, nil
}

func (c clusterWithResources) Kinds(context.Context, string) ([]apply.ServedKind, error) {
	return c.served, nil
}

// reconcileOrphan reconciles an orphan with a CRD in a cluster with further objects, which the cache has not seen yet.
func reconcileOrphan(
	t *testing.T, cluster clusterWithResources, more ...client.Object,
) (r *Reconciler, p *v1.Provider, exists bool) {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	digest := "sha256:" + strings.Repeat("1", 64)
	p = &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats", UID: "package", Generation: 1, Labels: map[string]string{
		"xpkg.dev/auto-installed": "true",
	}}}
	p.Spec.Package = "registry.example.com/boats:v1"
	p.Status.CurrentIdentifier, p.Status.ResolvedDigest, p.Status.ObservedGeneration = p.Spec.Package, digest, 1
	rev := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: "boats-1", UID: "revision", Labels: map[string]string{
		v1.LabelPackage: "boats",
	}}}
	rev.Spec.Image, rev.Spec.Digest, rev.Spec.DesiredState, rev.Spec.Revision = p.Spec.Package, digest, v1.RevisionActive,
		1
	rev.Status.ObjectRefs = []v1.TypedReference{{
		APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "boats.test", UID: "crd",
	}}
	if cluster.owner.Kind == "" {
		cluster.owner = metav1.OwnerReference{
			APIVersion: v1.GroupVersion.String(), Kind: "ProviderRevision", Name: rev.Name, UID: rev.UID, Controller: new(true),
		}
	}
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(more, p, rev)...).WithStatusSubresource(p, rev).
		Build()
	r = New(Config{
		Frontend: firstgen.Frontend(),
		Client:   lateCache{live}, Live: live, Cluster: cluster,
		Packages:     state.Packages{Content: emptyContent{}, Origins: emptyContent{}, Namespace: "crossplane-system"},
		Dependencies: &state.Dependencies{Content: emptyContent{}},
		Events:       events.NewFakeRecorder(8), Now: time.Now, Guard: func(context.Context) error { return nil },
		RollbackWindow: func(v1.Package, []v1.PackageRevision) time.Duration { return 0 },
	})
	if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil {
		t.Fatal(err)
	}
	return r, p, live.Get(t.Context(), client.ObjectKeyFromObject(p), p) == nil
}

// Whether custom resources would be deleted with an orphan is decided from the API server: the cache may
// not have seen yet which objects the orphan owns.
//
// hardening: J3
func TestAnOrphanWithCustomResourcesIsRetainedWhileTheCacheIsBehind(t *testing.T) {
	r, p, exists := reconcileOrphan(t, clusterWithResources{count: 1})
	if !exists {
		t.Error("the orphan was deleted with its custom resources")
	}
	if r.retained[p.UID] != "there are custom resources of boats.test" {
		t.Errorf("retained because of %q", r.retained)
	}
}

// A Provider that an install object uses is no orphan, although no package requires it.
func TestAProviderOfAnInstallObjectIsNoOrphan(t *testing.T) {
	for _, used := range []string{"", "boats", "rafts"} {
		in := packagesv1alpha1.NewInstall(packagesv1alpha1.PackageInstallKind)
		in.SetName("boats")
		in.SetNamespace("team")
		in.InstallStatus().Provider = used
		var served apply.ServedKind
		served.Kind = packagesv1alpha1.PackageInstallKind
		if _, _, exists := reconcileOrphan(
			t, clusterWithResources{served: []apply.ServedKind{served}}, in,
		); exists != (used == "boats") {
			t.Errorf("an install object uses %q: the orphan boats exists: %t", used, exists)
		}
	}
}

// A Provider that holds a kind of a Package of a user is no orphan either.
func TestAProviderOfAPackageOfAUserIsNoOrphan(t *testing.T) {
	served := []apply.ServedKind{{Kind: packagesv1alpha1.PackageKind}, {Kind: "Boat", Plural: "boats", Versions: []string{
		"v1",
	}}}
	owner := metav1.OwnerReference{
		APIVersion: v1.GroupVersion.String(), Kind: v1.ProviderKind, Name: "boats", UID: "package", Controller: new(true),
	}
	for kind, want := range map[string]bool{"Boat": true, "Raft": false} {
		p := &packagesv1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "harbor"}}
		p.Spec.CRDs = []packagesv1alpha1.Kind{{APIVersion: "sea.example.org/v1", Kind: kind}}
		if _, _, exists := reconcileOrphan(t, clusterWithResources{served: served, owner: owner}, p); exists != want {
			t.Errorf("a Package has the kind %s: the orphan boats exists: %t", kind, exists)
		}
	}
}
