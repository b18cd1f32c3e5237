package apply_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// installed is how many definitions the manager must be able to look at within its
// memory.
const installed = 2000

// manyDefinitions returns the pages of a list of many CRDs, with the complete
// metadata that an API server sends.
func manyDefinitions() (refs []plan.Ref, pages []string) {
	fields := func(manager, subresource, raw string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apiextensions.k8s.io/v1",
			FieldsType: "FieldsV1", Subresource: subresource, FieldsV1: metav1.NewFieldsV1(raw),
		}
	}
	ours := `{"f:metadata":{"f:annotations":{".":{},"f:controller-gen.kubebuilder.io/version":{},"f:xpkg.dev/content-digest":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"1\"}":{},"k:{\"uid\":\"2\"}":{}}},` +
		`"f:spec":{"f:conversion":{".":{},"f:strategy":{}},"f:group":{},"f:names":{"f:categories":{},"f:kind":{},"f:listKind":{},"f:plural":{},"f:singular":{}},"f:scope":{},"f:versions":{}}}`
	servers := `{"f:status":{"f:acceptedNames":{"f:categories":{},"f:kind":{},"f:listKind":{},"f:plural":{},"f:singular":{}},"f:conditions":{"k:{\"type\":\"Established\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}}}}`
	for len(refs) < installed {
		var list metav1.PartialObjectMetadataList
		for range 500 {
			ref := definition(fmt.Sprintf("definitions%d.memory.apply.test", len(refs)))
			refs = append(refs, ref)
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Name: ref.Name, UID: "4ec34d3e-17b4-4bd4-87c3-27ba9c0b1b0e", ResourceVersion: "123456", Generation: 1,
				Annotations: map[string]string{plan.ContentDigestAnnotation: "sha256:" +
					strings.Repeat("a", 64), "controller-gen.kubebuilder.io/version": "v0.14.0"},
				OwnerReferences: []metav1.OwnerReference{
					{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "provider-0123456789ab", UID: "4ec34d3e-17b4-4bd4-87c3-27ba9c0b1b0f"},
					{APIVersion: "pkg.crossplane.io/v1", Kind: "Provider", Name: "provider", UID: "4ec34d3e-17b4-4bd4-87c3-27ba9c0b1b10"},
				},
				ManagedFields: []metav1.ManagedFieldsEntry{
					fields(plan.FieldManager, "", ours), fields("xpkg-controlplane", "status", servers),
				},
			}})
		}
		if len(refs) < installed {
			list.Continue = "more"
		}
		pages = append(pages, encode(list))
	}
	return refs, pages
}

func serveDefinitions(t testing.TB, pages []string) (*apply.Cluster, *fakeServer) {
	t.Helper()
	var next int
	return play(t, func(r *http.Request) (*http.Response, error) {
		next++
		return answers(200, "application/json", pages[(next-1)%len(pages)])(r)
	})
}

// A plan keeps only the metadata that it needs from a large list. The managed
// fields, most of the response, are released with each page.
func TestMemoryOfALargeList(t *testing.T) {
	refs, pages := manyDefinitions()
	c, server := serveDefinitions(t, pages)
	before := heap()
	live, err := c.Metadata(t.Context(), refs)
	if err != nil {
		t.Fatal(err)
	}
	kept := heap() - before
	if len(live) != installed || len(server.calls) != len(pages) {
		t.Errorf("%d objects with %d calls", len(live), len(server.calls))
	}
	if limit := int64(installed * 2 << 10); kept > limit {
		t.Errorf("%d bytes are kept for %d objects, want at most %d", kept, installed, limit)
	}
	t.Logf("%d bytes sent and %d kept for %d objects", len(strings.Join(pages, "")), kept, installed)
	runtime.KeepAlive(live)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkMetadata(b *testing.B) {
	refs, pages := manyDefinitions()
	c, _ := serveDefinitions(b, pages)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Metadata(b.Context(), refs); err != nil {
			b.Fatal(err)
		}
	}
}
