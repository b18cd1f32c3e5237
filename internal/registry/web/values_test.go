package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/internal/registry/web/webtest"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
)

// TestValuesOfSchemasAreExact shows integers that no floating-point number can represent, and characters that YAML encoders refuse.
func TestValuesOfSchemasAreExact(t *testing.T) {
	const exact = "9007199254740993"
	crd := publish.Definition("exact.example.org", "Count", `"a\u007fb\uffffc\u0085d"`)
	crd = strings.Replace(crd, "spec: {type: object, x-kubernetes-preserve-unknown-fields: true}",
		"spec: {type: object, required: [size], properties: {size: {type: integer, format: int64, enum: ["+exact+"]}, limit: {type: integer, format: int64, default: "+exact+"}}}", 1)
	stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: counts}\nspec:\n  controller: {image: example.org/x:v1}\n" + crd
	h := newHandler(t, []folder.Version{webtest.Version(t, "acme/counts", "v1.0.0", time.Unix(1e9, 0), stream)}, webtest.Options())
	for path, want := range map[string]int{
		"/k/exact.example.org/Count":                                                    3, // The example has the allowed value.
		"/schemas/exact.example.org/count_v1.json":                                      2,
		"/api/v1/kinds/exact.example.org/Count/v1":                                      2,
		"/p/registry.example.org/acme/counts@v1.0.0/k/exact.example.org/Count/crd.yaml": 2,
	} {
		body := get(t, h, path, http.StatusOK).Body.String()
		if got := strings.Count(body, exact); got < want || strings.Contains(body, "9007199254740992") {
			t.Errorf("%s has %s %d times, want %d:\n%s", path, exact, got, want, body)
		}
	}
	crdYAML := get(t, h, "/p/registry.example.org/acme/counts@v1.0.0/k/exact.example.org/Count/crd.yaml", http.StatusOK).Body.String()
	if !strings.Contains(crdYAML, `a\u007fb\uffffc\u0085d`) {
		t.Errorf("the definition has not the characters of its description:\n%s", crdYAML)
	}
}
