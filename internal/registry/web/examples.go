package web

import (
	"context"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/catalog/docs"
)

// An exampleView is an example of a kind.
type exampleView struct {
	File, YAML string
	// Valid reports that an API server accepts the example.
	Valid bool
	// Problems are the reasons why it does not.
	Problems []string
}

// Limits of the examples of a page.
const (
	maxExamples     = 5
	maxExampleBytes = 64 << 10
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
func (c *exampleCache) of(ctx context.Context, key exampleKey, kind docs.Kind) []exampleView {
	c.mu.Lock()
	views, ok := c.views[key]
	c.mu.Unlock()
	if ok {
		return views
	}
	views = validateExamples(ctx, key, kind)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.views == nil || len(c.views) >= maxCachedExamples {
		c.views = map[exampleKey][]exampleView{}
	}
	c.views[key] = views
	return views
}

func validateExamples(ctx context.Context, key exampleKey, kind docs.Kind) []exampleView {
	var schemas *crdvalidation.Schemas
	var out []exampleView
	for _, e := range kind.Examples {
		object, ok := exampleObject(e, key)
		if !ok {
			continue
		}
		if schemas == nil {
			schemas = &crdvalidation.Schemas{}
			if err := addKind(schemas, kind, key.repository); err != nil {
				return nil
			}
		}
		v := exampleView{File: e.Name, YAML: strings.TrimSpace(e.YAML) + "\n", Valid: true}
		for _, p := range schemas.Validate(ctx, object) {
			v.Valid, v.Problems = false, append(v.Problems, strings.TrimPrefix(p.Path+": "+p.Message, ": "))
		}
		out = append(out, v)
		if len(out) == maxExamples {
			break
		}
	}
	return out
}

// exampleObject returns the object of an example if it is of the kind and API version.
func exampleObject(e docs.Example, key exampleKey) (map[string]any, bool) {
	if len(e.YAML) > maxExampleBytes {
		return nil, false
	}
	var object map[string]any
	if yaml.Unmarshal([]byte(e.YAML), &object) != nil {
		return nil, false
	}
	return object, object["kind"] == key.kind && object["apiVersion"] == key.group+"/"+key.version
}

// addKind adds the schemas of a kind. The composition engine adds fields to the schemas of composite resources and claims.
func addKind(schemas *crdvalidation.Schemas, kind docs.Kind, source string) error {
	if kind.Role == catalog.Composite || kind.Role == catalog.Claim {
		return schemas.AddComposite(kind.CRD, source)
	}
	return schemas.AddCRD(kind.CRD, source)
}
