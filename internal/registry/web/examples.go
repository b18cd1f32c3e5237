package web

import (
	"context"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/registry/web/fields"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/catalog/docs"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// An exampleView is an example of a kind that an API server accepts.
type exampleView struct {
	File, YAML string
	// Generated reports that the example was made from the schema.
	Generated bool
}

// Limits of the examples of a page.
const (
	maxExamples     = 5
	maxExampleBytes = 64 << 10
	// maxExampleSchema is the maximum size of a CRD for which an example is generated.
	maxExampleSchema = 1 << 20
)

type exampleKey struct{ digest, repository, tag, group, kind, version string }

// exampleCache keeps validated examples. The validation of a large schema takes longer than everything else on a page.
type exampleCache struct {
	mu    sync.Mutex
	views map[exampleKey][]exampleView
}

// maxCachedExamples is the maximum number of kinds whose examples are kept.
const maxCachedExamples = 1000

// of returns the examples of an API version of a kind, validated against its CRD.
func (c *exampleCache) of(ctx context.Context, key exampleKey, d *definition) []exampleView {
	c.mu.Lock()
	views, ok := c.views[key]
	c.mu.Unlock()
	if ok {
		return views
	}
	views = (&exampleValidator{key: key, definition: d}).examples(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.views == nil || len(c.views) >= maxCachedExamples {
		c.views = map[exampleKey][]exampleView{}
	}
	c.views[key] = views
	return views
}

// exampleValidator validates the examples of an API version of a kind. It reads the schema at the first example.
type exampleValidator struct {
	key        exampleKey
	definition *definition
	schemas    *crdvalidation.Schemas
}

// examples returns the valid examples of the author, and if there are none, one that is generated.
func (v *exampleValidator) examples(ctx context.Context) []exampleView {
	var out []exampleView
	for _, e := range v.definition.Examples {
		if len(out) < maxExamples && v.accepts(ctx, e.YAML) {
			out = append(out, exampleView{File: e.Name, YAML: strings.TrimSpace(e.YAML) + "\n"})
		}
	}
	if len(out) > 0 || len(v.definition.CRD) > maxExampleSchema {
		return out
	}
	if text := v.generated(ctx); text != "" {
		out = append(out, exampleView{YAML: text, Generated: true})
	}
	return out
}

// Limits of the search for a field that a rule requires.
const (
	maxRuleSchema   = 64 << 10
	maxRuleAttempts = 40
)

// generated returns a valid example with the required fields of the schema, and with one more field if a rule requires
// it; empty if there is none.
func (v *exampleValidator) generated(ctx context.Context) string {
	text := v.generate(nil)
	problems, ok := v.problems(ctx, text)
	switch {
	case !ok:
		return ""
	case len(problems) == 0:
		return text
	case len(v.definition.CRD) > maxRuleSchema:
		return ""
	}
	candidates := fields.Optional(versionSchema(v.definition.version(v.key.version)), namesOf(problems[0].Path))
	for _, also := range candidates[:min(len(candidates), maxRuleAttempts)] {
		if text := v.generate(also); v.accepts(ctx, text) {
			return text
		}
	}
	return ""
}

// namesOf returns the names of the fields on a path, without the positions of items.
func namesOf(path string) []string {
	names := strings.Split(path, ".")
	for i := range names {
		names[i], _, _ = strings.Cut(names[i], "[")
	}
	return names
}

// accepts reports whether an API server accepts an example, which must be of the kind and API version.
func (v *exampleValidator) accepts(ctx context.Context, text string) bool {
	problems, ok := v.problems(ctx, text)
	return ok && len(problems) == 0
}

// problems returns the reasons for which an API server rejects an example, and false if it is not of the kind and API
// version, or if the schema cannot be read.
func (v *exampleValidator) problems(ctx context.Context, text string) ([]check.Problem, bool) {
	if len(text) > maxExampleBytes {
		return nil, false
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, false
	}
	var object map[string]any
	if kjson.UnmarshalCaseSensitivePreserveInts(raw, &object) != nil || object["kind"] != v.key.kind ||
		object["apiVersion"] != v.key.group+"/"+v.key.version {
		return nil, false
	}
	if v.schemas == nil {
		v.schemas = &crdvalidation.Schemas{}
		if addKind(v.schemas, v.definition.Kind, v.key.repository) != nil {
			return nil, false
		}
	}
	return v.schemas.Validate(ctx, object), true
}

// generate returns an example with the required fields of the schema, and the field with the path also unless it is
// empty. The result is empty if there is none.
func (v *exampleValidator) generate(also []string) string {
	version := v.definition.version(v.key.version)
	if version == nil {
		return ""
	}
	object := fields.Example(versionSchema(version), also)
	if object == nil {
		return ""
	}
	metadata := map[string]any{"name": "example"}
	if v.definition.crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		metadata["namespace"] = "default"
	}
	object["apiVersion"], object["kind"], object["metadata"] = v.key.group+"/"+v.key.version, v.key.kind, metadata
	text, err := yaml.Marshal(object)
	if err != nil {
		return ""
	}
	return string(text)
}

// addKind adds the schemas of a kind. The composition engine adds fields to the schemas of composite resources and
// claims.
func addKind(schemas *crdvalidation.Schemas, kind docs.Kind, source string) error {
	if kind.Role == catalog.Composite || kind.Role == catalog.Claim {
		return schemas.AddComposite(kind.CRD, source)
	}
	return schemas.AddCRD(kind.CRD, source)
}
