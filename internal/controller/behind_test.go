package controller

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// behind is a cache that has not seen any revision yet.
type behind struct{ client.Client }

func (b behind) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(v1.PackageRevisionList); ok {
		return nil
	}
	return b.Client.List(ctx, list, opts...)
}

// shelf has one package, and is where every image is.
type shelf struct{ Content }

func (shelf) Read(context.Context, fetch.Origin, oci.Digest, bool) (*xpkg.Package, error) {
	return &xpkg.Package{Meta: xpkg.Meta{Kind: xpkg.Configuration}}, nil
}

func (shelf) Locate(_ context.Context, image string, _ []corev1.LocalObjectReference, _ corev1.PullPolicy) (fetch.Origin, imageconfig.Route, error) {
	return fetch.Plain(oci.MustParseReference(image)), imageconfig.Route{Image: image}, nil
}

func (shelf) Places(context.Context) (func(string) string, error) {
	return func(repository string) string { return repository }, nil
}

// A new revision is never made active beside one that the cache has not told of.
func TestNewRevisionWhileTheCacheIsBehind(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	p := &v1.Configuration{}
	p.Name, p.UID = "late", "package"
	p.Spec.Package = "registry.example.com/late@sha256:" + strings.Repeat("2", 64)
	old := &v1.ConfigurationRevision{}
	old.Name, old.Labels = "late-111111111111", map[string]string{v1.LabelPackage: p.Name}
	old.Spec.DesiredState, old.Spec.Revision = v1.RevisionActive, 1
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(p, old).WithStatusSubresource(p, old).Build()
	w := &world{client: behind{live}, live: live, content: shelf{}, origins: shelf{}, now: time.Now, poll: time.Minute, log: slog.New(slog.DiscardHandler), gate: gate{now: time.Now}}
	r := &packageReconciler{world: w, kind: v1.ConfigurationKind}
	if _, _, err := r.reconcile(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	var all v1.ConfigurationRevisionList
	if err := live.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, rev := range all.Items {
		if want := rev.Name != old.Name; active(&rev) != want || want && rev.Spec.Revision != 2 {
			t.Errorf("%s is %s with number %d", rev.Name, rev.Spec.DesiredState, rev.Spec.Revision)
		}
	}
	if len(all.Items) != 2 {
		t.Errorf("there are %d revisions", len(all.Items))
	}
}
