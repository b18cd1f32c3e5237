package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const limit = 3 * time.Minute

func definition(name string) plan.Ref {
	return plan.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: name}
}

// content returns a definition of a kind in the group, with a description that makes one
// version of it differ from another.
func content(t *testing.T, plural, group, description string) []byte {
	t.Helper()
	kind := strings.ToUpper(plural[:1]) + plural[1:len(plural)-1]
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group, "labels": map[string]string{"not": "taken from here"}},
		"spec": map[string]any{
			"group": group, "scope": "Cluster",
			"names": map[string]string{"kind": kind, "plural": plural, "singular": plural[:len(plural)-1], "listKind": kind +
				"List"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]string{"type": "object", "description": description}},
			}},
		},
		"status": map[string]any{"storedVersions": []string{"v9"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func always(raw []byte) apply.Content {
	return func(plan.Ref) ([]byte, error) { return raw, nil }
}

func newCluster(t testing.TB, wrap func(http.RoundTripper) http.RoundTripper) *apply.Cluster {
	t.Helper()
	cfg := rest.CopyConfig(cluster.Start(t))
	if wrap != nil {
		cfg.Wrap(wrap)
	}
	c, err := apply.NewCluster(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func one(t testing.TB, c *apply.Cluster, ref plan.Ref) plan.Live {
	t.Helper()
	live, err := c.Metadata(t.Context(), []plan.Ref{ref})
	if err != nil {
		t.Fatal(err)
	}
	l, ok := live[ref]
	if !ok {
		t.Fatalf("%s does not exist", ref.Name)
	}
	return l
}

// settled returns the metadata of a new CRD after the API server has written its
// status. From then on only the test changes it.
func settled(t testing.TB, c *apply.Cluster, ref plan.Ref) plan.Live {
	t.Helper()
	plural, group, _ := strings.Cut(ref.Name, ".")
	wait.Until(t, limit, ref.Name+" is served", func() (string, bool) {
		served, err := c.Served(t.Context(), 0)
		return fmt.Sprint(err), err == nil && served[schema.GroupResource{Group: group, Resource: plural}]
	})
	return one(t, c, ref)
}

// run applies one change. Objects that it creates are deleted when the test ends.
func run(t testing.TB, c *apply.Cluster, raw []byte, ch plan.Change) error {
	t.Helper()
	if ch.Action == plan.Create {
		t.Cleanup(func() { remove(t, ch.Ref) })
	}
	_, err := c.Run(t.Context(), plan.Plan{Changes: []plan.Change{ch}}, always(raw))
	return err
}

// remove deletes a definition and waits until it is gone.
func remove(t testing.TB, ref plan.Ref) {
	t.Helper()
	c, err := client.New(cluster.Start(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: ref.Name}}
	o.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	wait.Until(t, limit, ref.Name+" is gone", func() (string, bool) {
		err := c.Delete(context.Background(), o)
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
}

func TestCreateReplaceAndOwners(t *testing.T) {
	c := newCluster(t, nil)
	ref := definition("lives.apply.test")
	t.Cleanup(func() { remove(t, ref) })
	written, err := c.Run(t.Context(), plan.Plan{Changes: []plan.Change{{
		Action: plan.Create, Ref: ref, Labels: map[string]string{"a": "1", "b": "1"},
		Annotations: map[string]string{"x": "1"},
	}}}, always(content(t, "lives", "apply.test", "one")))
	if err != nil {
		t.Fatal(err)
	}
	created := settled(t, c, ref)
	if written[ref] != (plan.Written{UID: created.UID, Generation: 1}) || created.Generation != 1 {
		t.Errorf("Run says that it wrote %+v, the server has %+v", written[ref], created)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "1"}, created.Labels); diff != "" {
		t.Errorf("labels are those of the plan (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, created.ManagedLabels); diff != "" {
		t.Errorf("labels that we manage (-want +got):\n%s", diff)
	}

	err = run(t, c, content(t, "lives", "apply.test", "two"), plan.Change{
		Action: plan.Update, Ref: ref, UID: created.UID, ResourceVersion: created.ResourceVersion,
		Labels: map[string]string{"b": "2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	replaced := one(t, c, ref)
	if diff := cmp.Diff(map[string]string{"b": "2"}, replaced.Labels); diff != "" {
		t.Errorf("a label that the package dropped is gone (-want +got):\n%s", diff)
	}

	owner := metav1.OwnerReference{
		APIVersion: "v1", Kind: "Namespace", Name: "default", UID: "00000000-0000-0000-0000-000000000000",
	}
	err = run(t, c, nil, plan.Change{
		Action: plan.Own, Ref: ref, MetadataOnly: true, UID: replaced.UID, ResourceVersion: replaced.ResourceVersion,
		Owners: []metav1.OwnerReference{owner},
	})
	if err != nil {
		t.Fatal(err)
	}
	// The owner does not exist, so the garbage collector may be faster than we.
	live, err := c.Metadata(t.Context(), []plan.Ref{ref})
	if err != nil {
		t.Fatal(err)
	}
	if l, ok := live[ref]; ok {
		if diff := cmp.Diff([]metav1.OwnerReference{owner}, l.Owners); diff != "" {
			t.Errorf("owners (-want +got):\n%s", diff)
		}
	}
}

// Every write is guarded: what moved since the plan is not written over.
//
// hardening: J2
func TestWritesAreGuarded(t *testing.T) {
	c := newCluster(t, nil)
	ref := definition("guards.apply.test")
	raw := content(t, "guards", "apply.test", "one")
	create := plan.Change{Action: plan.Create, Ref: ref}
	if err := run(t, c, raw, create); err != nil {
		t.Fatal(err)
	}
	l := settled(t, c, ref)
	stale := plan.Change{Action: plan.Update, Ref: ref, UID: l.UID, ResourceVersion: "1"}
	other := plan.Change{
		Action: plan.Update, Ref: ref, UID: "11111111-1111-1111-1111-111111111111", ResourceVersion: l.ResourceVersion,
	}
	staleOwners, otherOwners := stale, other
	staleOwners.MetadataOnly, otherOwners.MetadataOnly = true, true
	absent := plan.Change{
		Action: plan.Update, Ref: definition("absents.apply.test"), UID: l.UID, ResourceVersion: l.ResourceVersion,
	}
	for name, ch := range map[string]plan.Change{
		"CreateWhatExists": create, "StaleResourceVersion": stale, "AnotherUID": other, "StaleOwners": staleOwners,
		"OwnersOfAnotherUID": otherOwners, "Gone": absent,
	} {
		body := raw
		if name == "Gone" {
			body = content(t, "absents", "apply.test", "one")
		}
		if err := run(t, c, body, ch); !errors.Is(err, apply.ErrMoved) {
			t.Errorf("%s: got %v, want %s", name, err, apply.ErrMoved.Name)
		}
	}
}

func TestServedKindsAndReasons(t *testing.T) {
	c := newCluster(t, nil)
	if err := run(t, c, content(t, "serves", "apply.test", "one"), plan.Change{
		Action: plan.Create, Ref: definition("serves.apply.test"),
	}); err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupResource{Group: "apply.test", Resource: "serves"}
	wait.Until(t, limit, "the kind is served", func() (string, bool) {
		served, err := c.Served(t.Context(), 0)
		return fmt.Sprint(err), err == nil && served[kind]
	})
	for _, group := range []string{"apply.test", "apiextensions.k8s.io", "autoscaling", "absent.test"} {
		direct, err := c.Kinds(t.Context(), group)
		if err != nil {
			t.Fatal(err)
		}
		if shared, err := c.SharedKinds(t.Context(), group, 0); err != nil || !reflect.DeepEqual(shared, direct) {
			t.Errorf(
				"the kinds of %s are %+v in the shared document (%v), and %+v in those of the group", group, shared, err, direct,
			)
		}
	}

	// A second definition of a kind that is taken is accepted and never served.
	raw := strings.ReplaceAll(string(content(t, "serves", "apply.test", "one")), `"plural":"serves"`, `"plural":"twins"`)
	raw = strings.ReplaceAll(raw, `"serves.apply.test"`, `"twins.apply.test"`)
	if err := run(t, c, []byte(raw), plan.Change{Action: plan.Create, Ref: definition("twins.apply.test")}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, limit, "the reason is known", func() (string, bool) {
		why, err := c.WhyNotEstablished(t.Context(), "twins.apply.test")
		return fmt.Sprint(why, err), err == nil && strings.Contains(why, "is already in use")
	})
}

func TestRefusalsWriteNothing(t *testing.T) {
	c := newCluster(t, func(http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			t.Errorf("a plan with a refusal sent %s %s", r.Method, r.URL.Path)
			return nil, context.Canceled
		})
	})
	p := plan.Plan{Changes: []plan.Change{{Action: plan.Create, Ref: definition("a.apply.test")}}}
	for i := range 5 {
		p.Refusals = append(p.Refusals, plan.Refusal{Holder: "Provider/other", Reason: fmt.Sprintf("reason %d", i)})
	}
	_, err := c.Run(t.Context(), p, always(nil))
	if !errors.Is(err, apply.ErrRefused) || !strings.Contains(err.Error(), "reason 0; reason 1; reason 2; and 2 more") {
		t.Errorf("got %v", err)
	}
	// An object without an owner is not refused.
	for i := range p.Refusals {
		p.Refusals[i].Cause = plan.Deleting
	}
	if _, err := c.Run(t.Context(), p, always(nil)); !errors.Is(err, apply.ErrDeleting) {
		t.Errorf("of objects that are being deleted: %v", err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The response of the server determines the class of an error, and with it whether
// the call is retried.
func TestAnswersAreClassified(t *testing.T) {
	cases := map[string]struct {
		answer func(http.RoundTripper, *http.Request) (*http.Response, error)
		want   errcode.Code
	}{
		"TooManyRequests": {status(http.StatusTooManyRequests), apply.ErrServer},
		"InternalError":   {status(http.StatusInternalServerError), apply.ErrServer},
		"Unavailable":     {status(http.StatusServiceUnavailable), apply.ErrServer},
		"Conflict":        {status(http.StatusConflict), apply.ErrMoved},
		"Forbidden":       {status(http.StatusForbidden), apply.ErrForbidden},
		"Invalid":         {status(http.StatusUnprocessableEntity), apply.ErrRejected},
		"TooLarge":        {status(http.StatusRequestEntityTooLarge), apply.ErrRejected},
		"Reset": {func(http.RoundTripper, *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("connection reset by peer")
		}, apply.ErrServer},
		"TimeoutAfterCommit": {func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			res, err := next.RoundTrip(r)
			if err == nil {
				res.Body.Close()
			}
			return nil, context.DeadlineExceeded
		}, apply.ErrServer},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			c := newCluster(t, func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					calls.Add(1)
					return tc.answer(next, r)
				})
			})
			plural := strings.ToLower(name) + "s"
			err := run(t, c, content(t, plural, "classes.test", "one"), plan.Change{
				Action: plan.Create, Ref: definition(plural + ".classes.test"),
			})
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %s", err, tc.want.Name)
			}
			if calls.Load() == 0 {
				t.Error("nothing was sent")
			}
		})
	}
}

func status(code int) func(http.RoundTripper, *http.Request) (*http.Response, error) {
	return func(_ http.RoundTripper, r *http.Request) (*http.Response, error) {
		body := fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Status","status":"Failure","code":%d,"reason":%q,"message":"injected"}`, code,
			reasons[code],
		)
		return &http.Response{
			StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": []string{"application/json"}}, Body: readCloser{strings.NewReader(body)},
		}, nil
	}
}

var reasons = map[int]metav1.StatusReason{
	http.StatusTooManyRequests:       metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError:   metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:    metav1.StatusReasonServiceUnavailable,
	http.StatusConflict:              metav1.StatusReasonConflict,
	http.StatusForbidden:             metav1.StatusReasonForbidden,
	http.StatusUnprocessableEntity:   metav1.StatusReasonInvalid,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }
