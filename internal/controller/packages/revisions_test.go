package packages

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/expectations"
	"github.com/xpkg-dev/xpkg/internal/controller/kube"
	"github.com/xpkg-dev/xpkg/internal/controller/runtimes"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// emptyCache is a client whose cache has no revisions yet.
type emptyCache struct{ client.Client }

func (b emptyCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(v1.PackageRevisionList); ok {
		return nil
	}
	return b.Client.List(ctx, list, opts...)
}

// onePackage returns the same package for each image.
type onePackage struct{ state.Content }

func (onePackage) Read(context.Context, fetch.Origin, oci.Digest, bool) (*xpkg.Package, error) {
	return &xpkg.Package{Meta: xpkg.Meta{Kind: xpkg.Configuration}}, nil
}

func (onePackage) Locate(
	_ context.Context, image string, _ []corev1.LocalObjectReference, _ corev1.PullPolicy,
) (fetch.Origin, imageconfig.Route, error) {
	return fetch.Plain(oci.MustParseReference(image)), imageconfig.Route{Image: image}, nil
}

func (onePackage) Rewrites(context.Context) (func(string) string, error) {
	return func(repository string) string { return repository }, nil
}

// onlyDigest is the digest to which each tag refers.
const onlyDigest = "sha256:3333333333333333333333333333333333333333333333333333333333333333"

func (onePackage) Resolve(context.Context, fetch.Origin, time.Duration) (oci.Digest, error) {
	return oci.ParseDigest(onlyDigest)
}

// reconcileBehind reconciles a package whose one revision the cache does not have yet, and returns all revisions.
func reconcileBehind(t *testing.T, p *v1.Configuration, rev *v1.ConfigurationRevision) []v1.ConfigurationRevision {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(p, rev).WithStatusSubresource(p, rev).Build()
	reporter := &status.Reporter{Now: time.Now, Writes: &expectations.Versions{Now: time.Now}}
	r := &Reconciler{Counts: &Counts{},
		Holder: func(string, string) string { return "" },
		Kind:   v1.ConfigurationKind,
		API: kube.API{
			Client: emptyCache{live}, Live: live, Revisions: &state.LiveRevisions{Reader: live}, Status: reporter,
		},
		Resolver: &Resolver{Packages: state.Packages{Content: onePackage{}, Origins: onePackage{}}, Poll: time.Minute},
		Rollback: revision.RollbackPolicy{Now: time.Now},
		Runtimes: &runtimes.Set{},
	}
	if _, _, err := r.reconcile(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	var all v1.ConfigurationRevisionList
	if err := live.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	return all.Items
}

// A new revision never becomes active beside an active one that the cache does not have yet.
func TestTwoRevisionsAreNeverActiveWhileTheCacheIsBehind(t *testing.T) {
	for name, current := range map[string]string{"Known": "late-111111111111", "WithoutStatus": ""} {
		t.Run(name, func(t *testing.T) {
			p := &v1.Configuration{}
			p.Name, p.UID = "late", "package"
			p.Spec.Package = "registry.example.com/late@sha256:" + strings.Repeat("2", 64)
			p.Status.CurrentRevision = current
			old := &v1.ConfigurationRevision{}
			old.Name, old.Labels = "late-111111111111", map[string]string{v1.LabelPackage: p.Name}
			old.Spec.DesiredState, old.Spec.Revision = v1.RevisionActive, 1
			all := reconcileBehind(t, p, old)
			for _, rev := range all {
				if want := rev.Name != old.Name; revision.IsActive(&rev) != want || want && rev.Spec.Revision != 2 {
					t.Errorf("%s is %s with number %d", rev.Name, rev.Spec.DesiredState, rev.Spec.Revision)
				}
			}
			if len(all) != 2 {
				t.Errorf("there are %d revisions", len(all))
			}
		})
	}
}

// A restored package keeps the content of its restored revision while the cache does not have that revision yet, also
// if its tag has moved.
func TestRestoredPackageKeepsItsContentWhileTheCacheIsBehind(t *testing.T) {
	p := &v1.Configuration{}
	p.Name, p.UID = "restored", "package"
	p.Spec.Package = "registry.example.com/restored:v1"
	old := &v1.ConfigurationRevision{}
	old.Spec.DesiredState, old.Spec.Revision = v1.RevisionActive, 1
	old.Spec.Image, old.Spec.Digest = p.Spec.Package, "sha256:"+strings.Repeat("1", 64)
	old.Name, old.Labels = revision.Name(p, old.Spec.Digest, nil), map[string]string{v1.LabelPackage: p.Name}
	all := reconcileBehind(t, p, old)
	if len(all) != 1 || all[0].Name != old.Name || !revision.IsActive(&all[0]) {
		t.Errorf("%d revisions: %+v", len(all), all)
	}
}

// A package whose deletion orphans its objects is left to the garbage collector: nothing is read or deleted.
func TestADeletionThatOrphansObjectsDeletesNothing(t *testing.T) {
	p := &v1.Provider{}
	p.SetName("boats")
	p.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	p.SetFinalizers([]string{v1.FinalizerRuntimeProtection, metav1.FinalizerOrphanDependents})
	r := &Reconciler{Counts: &Counts{}, API: kube.API{Status: &status.Reporter{Now: time.Now}}, Kind: v1.ProviderKind}
	result, summary, err := r.reconcileDelete(t.Context(), p)
	if err != nil || result.RequeueAfter == 0 || !strings.Contains(summary.Message, "its objects are kept") {
		t.Errorf("got %+v, %+v, %v", result, summary, err)
	}
}
