package revisions

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/kube"
	"github.com/xpkg-dev/xpkg/internal/controller/runtimes"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// An object that another client has changed is not recorded as written before it is: a write that fails is
// repeated.
func TestAChangedObjectIsRecordedOnlyWhenItIsWritten(t *testing.T) {
	crd := plan.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "things.example.org"}
	hook := plan.Ref{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration", Name: "hook"}
	live := map[plan.Ref]plan.Live{crd: {Ref: crd, UID: "new", Generation: 3}}
	reference := func(generation int64) []v1.TypedReference {
		return []v1.TypedReference{typedReference(crd, plan.Written{UID: "new", Generation: generation})}
	}
	content := plan.Plan{Changes: []plan.Change{{Ref: crd, Action: plan.Correct}}}
	for name, tc := range map[string]struct {
		live  map[plan.Ref]plan.Live
		known map[plan.Ref]plan.Written
		plan  plan.Plan
		want  []v1.TypedReference
	}{
		"Unchanged":        {live, nil, plan.Plan{}, reference(3)},
		"MetadataOnly":     {live, nil, plan.Plan{Changes: []plan.Change{{Ref: crd, MetadataOnly: true}}}, reference(3)},
		"ChangedByAnother": {live, map[plan.Ref]plan.Written{crd: {UID: "new", Generation: 2}}, content, reference(2)},
		"CreatedByAnother": {live, map[plan.Ref]plan.Written{crd: {UID: "old", Generation: 7}}, content, reference(0)},
		"NeverWritten":     {live, nil, content, reference(0)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, plannedRefs([]plan.Ref{crd}, tc.live, tc.known, tc.plan)); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
		})
	}
	got := plannedRefs([]plan.Ref{crd, hook}, live, nil, plan.Plan{Changes: []plan.Change{{
		Ref: hook, Action: plan.Create,
	}}})
	if diff := cmp.Diff(reference(3), got); diff != "" {
		t.Errorf("with a new webhook configuration (-want +got):\n%s", diff)
	}
}

// Objects that the watches show as they were written are not read again.
func TestOnlyObjectsThatAreNotSettledAreRead(t *testing.T) {
	crd := plan.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "things.example.org"}
	policy := plan.Ref{
		APIVersion: "apiextensions.crossplane.io/v1alpha1", Kind: "ManagedResourceActivationPolicy",
		Name: "things.example.org",
	}
	unwritten := plan.Ref{APIVersion: crd.APIVersion, Kind: crd.Kind, Name: "new.example.org"}
	pkg := plan.Owner{APIVersion: "pkg.crossplane.io/v1", Kind: "Provider", Name: "aws", UID: "uid-aws"}
	who := plan.Requester{Package: pkg, Revision: plan.Owner{
		APIVersion: pkg.APIVersion, Kind: "ProviderRevision", Name: "aws-1", UID: "uid-aws-1",
	}}
	const path, policyPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.org",
		"/apis/apiextensions.crossplane.io/v1alpha1/managedresourceactivationpolicies/things.example.org"
	for name, tc := range map[string]struct {
		ref     plan.Ref
		known   plan.Written
		change  func(*metav1.PartialObjectMetadata)
		request string
	}{
		"Settled":         {crd, plan.Written{UID: "uid-crd", Generation: 3}, nil, ""},
		"OtherGeneration": {crd, plan.Written{UID: "uid-crd", Generation: 2}, nil, path},
		"OtherObject":     {crd, plan.Written{UID: "uid-old", Generation: 3}, nil, path},
		"NotRecorded":     {crd, plan.Written{}, nil, path},
		"OtherContent": {
			crd, plan.Written{UID: "uid-crd", Generation: 3},
			func(o *metav1.PartialObjectMetadata) { o.Annotations[plan.ContentDigestAnnotation] = "d1" }, path,
		},
		"LabelOfAnother": {
			crd, plan.Written{UID: "uid-crd", Generation: 3},
			func(o *metav1.PartialObjectMetadata) { o.Labels = map[string]string{"team": "a"} }, path,
		},
		"OwnerOfAnother": {
			crd, plan.Written{UID: "uid-crd", Generation: 3},
			func(o *metav1.PartialObjectMetadata) { o.OwnerReferences[0].Name = "gcp" }, path,
		},
		"NoOwner": {
			crd, plan.Written{UID: "uid-crd", Generation: 3}, func(o *metav1.PartialObjectMetadata) { o.OwnerReferences = nil },
			path,
		},
		"Deleted": {
			crd, plan.Written{UID: "uid-crd", Generation: 3},
			func(o *metav1.PartialObjectMetadata) { o.Name = "others.example.org" }, path,
		},
		"KindIsNotWatched": {policy, plan.Written{UID: "uid-crd", Generation: 3}, nil, policyPath},
	} {
		t.Run(name, func(t *testing.T) {
			o := watch.Metadata(schema.FromAPIVersionAndKind(tc.ref.APIVersion, tc.ref.Kind))
			o.ObjectMeta = metav1.ObjectMeta{
				Name: tc.ref.Name, UID: "uid-crd", Generation: 3, OwnerReferences: []metav1.OwnerReference{pkg.Reference(true)},
				Annotations: map[string]string{plan.ContentDigestAnnotation: "d2"},
			}
			if tc.change != nil {
				tc.change(o)
			}
			var requests []string
			cluster, err := apply.NewCluster(&rest.Config{
				Host: "http://cluster.example.org", Transport: transport(func(r *http.Request) (*http.Response, error) {
					requests = append(requests, r.URL.Path)
					w := httptest.NewRecorder()
					http.NotFound(w, r)
					return w.Result(), nil
				})})
			if err != nil {
				t.Fatal(err)
			}
			scheme := runtime.NewScheme()
			if err := metav1.AddMetaToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			r := &Reconciler{
				API:      kube.API{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(o).Build(), Cluster: cluster},
				Runtimes: &Runtimes{Set: &runtimes.Set{}},
			}
			known := map[plan.Ref]plan.Written{tc.ref: tc.known}
			if tc.known == (plan.Written{}) {
				delete(known, tc.ref)
			}
			live, err := r.liveObjects(
				t.Context(), []plan.Desired{{Ref: tc.ref, Digest: "d2"}, {Ref: unwritten, Digest: "d2"}}, known, who,
			)
			if tc.request == "" {
				if err != nil || len(requests) > 0 || live[tc.ref].Generation != 3 {
					t.Errorf("%+v after the requests %v (%v), want the object of the watch", live, requests, err)
				}
				return
			}
			if !slices.Equal(requests, []string{tc.request}) || len(live) > 0 {
				t.Errorf("%+v after the requests %v, want none after %s", live, requests, tc.request)
			}
		})
	}
}

// transport is a function that sends a request.
type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
