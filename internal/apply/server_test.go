package apply_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// These tests confirm the assumptions of the fake API servers with a real one.

// A patch of metadata sets and removes only the names that it contains, and does
// not change the generation.
func TestPatchOfMetadata(t *testing.T) {
	c := newCluster(t, nil)
	ref := definition("patches.apply.test")
	raw := content(t, "patches", "apply.test", "one")
	if err := run(t, c, raw, plan.Change{
		Action: plan.Create, Ref: ref, Labels: map[string]string{"keep": "1", "set": "1", "drop": "1"},
		Annotations: map[string]string{"keep": "1", "drop": "1"},
	}); err != nil {
		t.Fatal(err)
	}
	before := settled(t, c, ref)
	namespace := metav1.OwnerReference{
		APIVersion: "v1", Kind: "Namespace", Name: "default", UID: namespaceUID(t), Controller: new(true),
	}
	written, err := c.Run(t.Context(), plan.Plan{Changes: []plan.Change{{
		Action: plan.Update, Ref: ref, MetadataOnly: true, UID: before.UID, ResourceVersion: before.ResourceVersion,
		Labels: map[string]string{"set": "2", "new": "1"}, RemoveLabels: []string{"drop", "never there"},
		RemoveAnnotations: []string{"drop"}, Owners: []metav1.OwnerReference{namespace},
	}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	after := one(t, c, ref)
	want := before
	want.ResourceVersion = after.ResourceVersion
	want.Labels = map[string]string{"keep": "1", "set": "2", "new": "1"}
	want.Annotations = map[string]string{"keep": "1"}
	want.ManagedLabels, want.ManagedAnnotations = []string{"keep", "new", "set"}, []string{"keep"}
	want.Owners = []metav1.OwnerReference{namespace}
	// The patch is an entry of its own beside the one of the first write.
	slices.Sort(after.ManagedLabels)
	after.ManagedLabels = slices.Compact(after.ManagedLabels)
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("after the patch (-want +got):\n%s", diff)
	}
	if want := (plan.Written{UID: before.UID, Generation: before.Generation}); written[ref] != want {
		t.Errorf("Run tells %+v, want %+v", written[ref], want)
	}
}

// Run returns the generation of the written object, and reports changes by other
// clients.
func TestGenerations(t *testing.T) {
	c := newCluster(t, nil)
	ref := definition("generations.apply.test")
	if err := run(t, c, content(t, "generations", "apply.test", "one"), plan.Change{
		Action: plan.Create, Ref: ref,
	}); err != nil {
		t.Fatal(err)
	}
	for i, description := range []string{"one", "two", "three"} {
		live := settled(t, c, ref)
		written, err := c.Run(t.Context(), plan.Plan{Changes: []plan.Change{{
			Action: plan.Update, Ref: ref, UID: live.UID, ResourceVersion: live.ResourceVersion,
		}}}, always(content(t, "generations", "apply.test", description)))
		if err != nil {
			t.Fatal(err)
		}
		if want := (plan.Written{UID: live.UID, Generation: int64(i + 1)}); written[ref] != want {
			t.Errorf("Run tells %+v, want %+v", written[ref], want)
		}
		if live := one(t, c, ref); live.Generation != int64(i+1) || live.OthersWrote {
			t.Errorf("the object is read as %+v", live)
		}
	}
	change(t, ref, `{"spec":{"preserveUnknownFields":false,"names":{"shortNames":["theirs"]}}}`)
	if live := one(t, c, ref); live.Generation != 4 || !live.OthersWrote {
		t.Errorf("changed by another, the object is read as %+v", live)
	}
}

// The answers to writes are lost after they were carried out: each write is made
// again and recognized, and the API server has it once.
//
// hardening: J6
func TestLostAnswersOfTheServer(t *testing.T) {
	var writes atomic.Int64
	c := newCluster(t, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			res, err := next.RoundTrip(r)
			if err == nil && r.Method != http.MethodGet && writes.Add(1)%2 == 1 {
				res.Body.Close()
				return nil, io.ErrUnexpectedEOF
			}
			return res, err
		})
	})
	ref := definition("loses.apply.test")
	t.Cleanup(func() { remove(t, ref) })
	digest := func(s string) map[string]string { return map[string]string{plan.ContentDigestAnnotation: s} }
	must := func(ch plan.Change, description string) plan.Live {
		t.Helper()
		written, err := c.Run(
			t.Context(), plan.Plan{Changes: []plan.Change{ch}}, always(content(t, "loses", "apply.test", description)),
		)
		if err != nil {
			t.Fatal(err)
		}
		live := settled(t, c, ref)
		if want := (plan.Written{UID: live.UID, Generation: live.Generation}); written[ref] != want {
			t.Errorf("%s: Run tells %+v, want %+v", ch.Action, written[ref], want)
		}
		return live
	}
	live := must(plan.Change{Action: plan.Create, Ref: ref, Annotations: digest("1")}, "one")
	live = must(plan.Change{
		Action: plan.Update, Ref: ref, UID: live.UID, ResourceVersion: live.ResourceVersion, Annotations: digest("2"),
	}, "two")
	must(plan.Change{
		Action: plan.Own, Ref: ref, MetadataOnly: true, UID: live.UID, ResourceVersion: live.ResourceVersion,
		Owners: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "default", UID: namespaceUID(t)}},
	}, "")
	if n := writes.Load(); n != 6 {
		t.Errorf("%d writes, want each of three twice", n)
	}
}

// Every operation reports a kind that the API server does not serve with the same
// error.
//
// hardening: J13
func TestKindsThatTheServerDoesNotServe(t *testing.T) {
	c := newCluster(t, nil)
	ref := plan.Ref{APIVersion: "ops.crossplane.io/v1alpha7", Kind: "Operation", Name: "a"}
	if _, err := c.Metadata(t.Context(), []plan.Ref{ref}); !errors.Is(err, apply.ErrKindNotServed) {
		t.Errorf("read: %v", err)
	}
	for _, ch := range []plan.Change{{Action: plan.Create, Ref: ref}, {
		Action: plan.Update, Ref: ref, UID: "u", ResourceVersion: "1",
	}} {
		if _, err := c.Run(
			t.Context(), plan.Plan{Changes: []plan.Change{ch}},
			always([]byte(`{"apiVersion":"ops.crossplane.io/v1alpha7","kind":"Operation"}`)),
		); !errors.Is(err, apply.ErrKindNotServed) {
			t.Errorf("%s: %v", ch.Action, err)
		}
	}
}

func namespaceUID(t *testing.T) types.UID {
	t.Helper()
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if err := other(t).Get(t.Context(), client.ObjectKey{Name: "default"}, o); err != nil {
		t.Fatal(err)
	}
	return o.UID
}

// change patches an object as another field manager.
func change(t *testing.T, ref plan.Ref, patch string) {
	t.Helper()
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: ref.Name}}
	o.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if err := other(t).Patch(
		t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("other-client"),
	); err != nil {
		t.Fatal(err)
	}
}

// other returns a client that has nothing to do with the Cluster.
func other(t testing.TB) client.Client {
	t.Helper()
	c, err := client.New(cluster.Start(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// An object that is too large for the database of the API server is rejected for good, and leaves nothing behind.
//
// hardening: J7
func TestObjectThatIsTooLargeForTheServerIsRejected(t *testing.T) {
	var calls atomic.Int64
	c := newCluster(t, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			calls.Add(1)
			return next.RoundTrip(r)
		})
	})
	ref := definition("larges.apply.test")
	for name, size := range map[string]int{"database": 2 << 20, "request": 4 << 20} {
		calls.Store(0)
		err := run(t, c, content(t, "larges", "apply.test", strings.Repeat("x", size)), plan.Change{
			Action: plan.Create, Ref: ref,
		})
		if !errors.Is(err, apply.ErrRejected) {
			t.Errorf("%s: got %v, want %s", name, err, apply.ErrRejected.Name)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("%s: %d calls", name, n)
		}
		if live, err := c.Metadata(t.Context(), []plan.Ref{ref}); err != nil || len(live) > 0 {
			t.Errorf("%s: %v, %v", name, live, err)
		}
	}
}
