package apply_test

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// listed returns a reply with a page of definitions.
func listed(next string, names ...string) reply {
	list := metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{Continue: next}}
	for _, name := range names {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u"}})
	}
	return answers(200, "application/json", encode(list))
}

// page returns the part of a request that selects the page.
func page(r *http.Request) string {
	return r.URL.Query().Get("limit") + "/" + r.URL.Query().Get("continue")
}

func TestListsInPages(t *testing.T) {
	refs, name := many(), func(i int) string { return "many" + strconv.Itoa(i) + ".apply.test" }
	var pages []string
	noting := func(next reply) reply {
		return func(r *http.Request) (*http.Response, error) {
			pages = append(pages, page(r))
			return next(r)
		}
	}
	expired := statusReply(410, metav1.StatusReasonExpired)
	tests := map[string]struct {
		replies []reply
		pages   []string
		found   []int
	}{
		"one page": {[]reply{listed("", name(1), "other.apply.test")}, []string{"500/"}, []int{1}},
		"nothing":  {[]reply{listed("")}, []string{"500/"}, nil},
		"three pages": {
			[]reply{listed("a", name(1)), listed("b", "other"), listed("", name(2), name(3))},
			[]string{"500/", "500/a", "500/b"}, []int{1, 2, 3},
		},
		"a page expired": {
			[]reply{listed("a", name(1)), expired, listed("b", name(1)), listed("", name(2))},
			[]string{"500/", "500/a", "500/", "500/b"}, []int{1, 2},
		},
	}
	for test, tc := range tests {
		t.Run(test, func(t *testing.T) {
			pages = nil
			var replies []reply
			for _, r := range tc.replies {
				replies = append(replies, noting(r))
			}
			c, _ := play(t, replies...)
			got, err := c.Metadata(t.Context(), refs)
			if err != nil {
				t.Fatal(err)
			}
			want := map[plan.Ref]plan.Live{}
			for _, i := range tc.found {
				want[refs[i]] = plan.Live{Ref: refs[i], UID: "u"}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.pages, pages); diff != "" {
				t.Errorf("pages that were asked for (-want +got):\n%s", diff)
			}
		})
	}
}

// The error names kinds that the cluster does not serve, and objects of the other
// kinds are returned.
//
// hardening: I-8, J13
func TestKindsThatAreNotServed(t *testing.T) {
	composition := func(i int) plan.Ref {
		return plan.Ref{APIVersion: "apiextensions.crossplane.io/v1", Kind: "Composition", Name: fmt.Sprint("c", i)}
	}
	crd := definition("a.apply.test")
	for name, n := range map[string]int{"few": 1, "many": 30} {
		t.Run(name, func(t *testing.T) {
			c, server := play(t, func(r *http.Request) (*http.Response, error) {
				if strings.Contains(r.URL.Path, "/compositions") {
					return answers(404, "text/plain; charset=utf-8", "404 page not found")(r)
				}
				return holdsObject(metav1.ObjectMeta{UID: "u"})(r)
			})
			refs := []plan.Ref{crd}
			for i := range n {
				refs = append(refs, composition(i))
			}
			live, err := c.Metadata(t.Context(), refs)
			if !errors.Is(err, apply.ErrKindNotServed) ||
				!strings.Contains(err.Error(), "Composition of apiextensions.crossplane.io/v1") {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(map[plan.Ref]plan.Live{crd: {Ref: crd, UID: "u"}}, live); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
			if len(server.calls) != 2 {
				t.Errorf("calls: %v", server.calls)
			}
		})
	}
}

func TestKindsThatNoPackageInstalls(t *testing.T) {
	c, server := play(t, holdsObject(metav1.ObjectMeta{}))
	for name, ref := range map[string]plan.Ref{
		"kind":       {APIVersion: "v1", Kind: "Secret", Name: "a"},
		"apiVersion": {APIVersion: "a/b/c", Kind: "Composition", Name: "a"},
	} {
		if _, err := c.Metadata(t.Context(), []plan.Ref{ref}); !errors.Is(err, apply.ErrKindUnknown) {
			t.Errorf("read of an unknown %s: %v", name, err)
		}
		p := plan.Plan{Changes: []plan.Change{{Action: plan.Create, Ref: ref}}}
		if _, err := c.Run(t.Context(), p, always([]byte("{}"))); !errors.Is(err, apply.ErrKindUnknown) {
			t.Errorf("write of an unknown %s: %v", name, err)
		}
	}
	if len(server.calls) > 0 {
		t.Errorf("calls: %v", server.calls)
	}
}

func TestContentThatCannotBeWritten(t *testing.T) {
	c, server := play(t, holdsObject(metav1.ObjectMeta{}))
	for _, raw := range []string{"", "null", "[]", "{", `"x"`} {
		p := plan.Plan{Changes: []plan.Change{{Action: plan.Create, Ref: definition("a.apply.test")}}}
		if _, err := c.Run(t.Context(), p, always([]byte(raw))); !errors.Is(err, apply.ErrContent) {
			t.Errorf("content %q: %v", raw, err)
		}
	}
	if len(server.calls) > 0 {
		t.Errorf("calls: %v", server.calls)
	}
}

func TestObjectMetadataIsReadFromPages(t *testing.T) {
	ref := definition("a.apply.test")
	meta := metav1.ObjectMeta{
		Name: ref.Name, UID: "u", ResourceVersion: "7", Generation: 3, Labels: map[string]string{"l": "1"},
		Annotations:     map[string]string{"a": "1"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Provider", Name: "p"}},
	}
	ours := `{"f:metadata":{"f:labels":{".":{},"f:b":{},"f:a":{}},"f:annotations":{"f:c":{}}},"f:spec":{}}`
	own := metav1.ManagedFieldsEntry{Manager: plan.FieldManager, FieldsV1: metav1.NewFieldsV1(ours)}
	with := func(manager, subresource, fields string) metav1.ObjectMeta {
		m := *meta.DeepCopy()
		m.ManagedFields = []metav1.ManagedFieldsEntry{own, {
			Manager: manager, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields),
		}}
		return m
	}
	want := plan.Live{
		Ref: ref, UID: "u", ResourceVersion: "7", Generation: 3, Labels: meta.Labels, Annotations: meta.Annotations,
		Owners:        meta.OwnerReferences,
		ManagedLabels: []string{"a", "b"}, ManagedAnnotations: []string{"c"},
	}
	changed := want
	changed.OthersWrote = true
	tests := map[string]struct {
		meta metav1.ObjectMeta
		want plan.Live
	}{
		"labels of another":      {with("kubectl", "", `{"f:metadata":{"f:labels":{"f:z":{}}}}`), want},
		"status of the server":   {with("kube-apiserver", "status", `{"f:status":{"f:conditions":{}}}`), want},
		"status without a word":  {with("old", "", `{"f:status":{}}`), want},
		"spec of another":        {with("kubectl", "", `{"f:spec":{"f:state":{}}}`), changed},
		"webhooks of another":    {with("cert-manager", "", `{"f:webhooks":{}}`), changed},
		"scale of another":       {with("scaler", "scale", `{"f:spec":{}}`), want},
		"fields nobody can read": {with("odd", "", `[1]`), want},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, _ := play(t, holdsObject(tc.meta))
			got, err := c.Metadata(t.Context(), []plan.Ref{ref})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[plan.Ref]plan.Live{ref: tc.want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
