package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/internal/registry/web/webtest"
)

// firstGenerationStream is a converted package of the first generation with its metadata for people.
const firstGenerationStream = `apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata:
  name: buckets
  annotations:
    friendly-name.meta.crossplane.io: Cloud Buckets
    meta.xpkg.dev/category: Object Storage
    meta.xpkg.dev/keywords: blobs, archives
    meta.xpkg.dev/summary: Buckets of a cloud.
    meta.xpkg.dev/packageType: Stack
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: buckets.storage.example.org
  annotations:
    packages.crossplane.io/group-title: Storage of the Cloud
    packages.crossplane.io/resource-title: Cloud Bucket
    packages.crossplane.io/resource-category: Cold Storage
    packages.crossplane.io/resource-overview: Keeps objects for years.
    packages.crossplane.io/ui-schema: |
      configSections:
      - title: Place of the bucket
        items:
        - {name: region, controlType: singleInput, path: .spec.region, title: Region of the bucket}
spec:
  group: storage.example.org
  scope: Cluster
  names: {kind: Bucket, plural: buckets, singular: bucket, listKind: BucketList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {region: {type: string}}}}
`

// The metadata of the first generation is what people explore: categories lead to packages, and pages have titles,
// overviews and the fields of forms.
func TestPackagesOfTheFirstGenerationAreExploredAndCategorized(t *testing.T) {
	h := newHandler(t, []folder.Version{
		webtest.Version(t, "acme/buckets", "v1.0.0", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), firstGenerationStream),
	}, webtest.Options())
	for path, want := range map[string][]string{
		"/":                                    {`href="/search?q=Object&#43;Storage"`},
		"/search?q=object+storage":             {"acme/buckets"},
		"/search?q=archives":                   {"acme/buckets"},
		"/p/registry.example.org/acme/buckets": {"Cloud Buckets", "Buckets of a cloud.", "Object Storage"},
		"/k/storage.example.org/Bucket": {
			"Cloud Bucket", "Cold Storage", "Keeps objects for years.", "Storage of the Cloud", "Place of the bucket",
			"Region of the bucket",
		},
	} {
		w := serve(h, path, "")
		if w.Code != http.StatusOK {
			t.Errorf("%s: status %d", path, w.Code)
			continue
		}
		for _, text := range want {
			if !strings.Contains(w.Body.String(), text) {
				t.Errorf("%s does not contain %q", path, text)
			}
		}
	}
}

// TestDescriptionsAreReflowed writes the same description of two lines with an address into each place of a kind. Every
// one is a paragraph with a link.
func TestDescriptionsAreReflowed(t *testing.T) {
	const text = "A description\\nof two lines: https://example.org/a."
	stream := strings.NewReplacer(
		"Keeps objects for years.", `"`+text+`"`, "- title: Place of the bucket",
		`- title: Place of the bucket`+"\n        description: \""+text+`"`,
		"title: Region of the bucket", `title: Region of the bucket, description: "`+text+`"`,
		"type: object\n        properties: {spec: {type: object, properties: {region: {type: string}}}}",
		`{type: object, description: "`+text+`", properties: {spec: {type: object, description: "`+text+`"}}}`,
	).Replace(firstGenerationStream)
	stream = strings.Replace(stream, "openAPIV3Schema:\n        {", "openAPIV3Schema: {", 1)
	h := newHandler(
		t, []folder.Version{webtest.Version(t, "acme/buckets", "v1.0.0", time.Unix(1e9, 0), stream)}, webtest.Options(),
	)
	body := get(t, h, "/k/storage.example.org/Bucket", http.StatusOK).Body.String()
	const want = `<p>A description of two lines: <a href="https://example.org/a" rel="nofollow noopener ugc">https://example.org/a</a>.</p>`
	if got := strings.Count(body, want); got != 5 {
		t.Errorf("%d of 5 descriptions are paragraphs with a link:\n%s", got, body)
	}
}
