package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/jsonschema"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// TestFilesMatchTheirSchemas compares files with their schemas: every field of a file is in the schema with its type,
// and no required field is missing.
func TestFilesMatchTheirSchemas(t *testing.T) {
	plan, err := os.ReadFile("../planner/testdata/plan.json")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := yaml.YAMLToJSON(lockfile.Encode(lockfile.File{
		Roots: []dependency.Root{{Package: "ghcr.io/acme/boats", Constraint: "v1.0.0", Exact: true}, {
			Package: "ghcr.io/acme/rafts", Constraint: ">=v1", By: "fleet", Optional: true,
		}},
		Packages: []lockfile.Package{{
			Repository: "ghcr.io/acme/boats", Version: "v1.0.0", Digest: oci.DigestOf([]byte("a")), Kind: "Provider",
			Dependencies: []dependency.Dependency{{Package: "ghcr.io/acme/water", Constraint: ">=v1"}},
		}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	index, err := json.Marshal(catalog.Config{
		Format: 1, Name: "acme", Sequence: 2, Previous: oci.DigestOf([]byte("b")), Created: time.Unix(1, 0),
		Owners: []catalog.GroupOwner{{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"schemas/plan.json": plan, "schemas/lock.json": lock, "schemas/index.json": index,
	} {
		var page bytes.Buffer
		if err := schemas()[name](&page); err != nil {
			t.Fatal(err)
		}
		var schema jsonschema.Schema
		var value any
		if err := json.Unmarshal(page.Bytes(), &schema); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &value); err != nil {
			t.Fatal(err)
		}
		for _, problem := range mismatches(name, &schema, value) {
			t.Error(problem)
		}
		if broken := mismatches("", &schema, map[string]any{"unknown": true}); len(broken) < 2 {
			t.Errorf("%s accepts a file without fields: %v", name, broken)
		}
	}
}

// mismatches returns the places where a value does not match a schema.
func mismatches(path string, s *jsonschema.Schema, value any) (out []string) {
	if s.Type != nil && !slices.Contains(typesOf(s.Type), typeOf(value)) {
		return []string{fmt.Sprintf("%s is %s and not %v", path, typeOf(value), s.Type)}
	}
	if s.Const != "" && s.Const != value {
		out = append(out, fmt.Sprintf("%s is %v and not %s", path, value, s.Const))
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				out = append(out, path+" has no "+name)
			}
		}
		for name, field := range v {
			of := s.Properties[name]
			if of == nil {
				of = s.AdditionalProperties
			}
			switch {
			case of != nil:
				out = append(out, mismatches(path+"."+name, of, field)...)
			case s.Type != nil:
				out = append(out, path+" has the unknown field "+name)
			}
		}
	case []any:
		for i, item := range v {
			if s.Items != nil {
				out = append(out, mismatches(fmt.Sprintf("%s[%d]", path, i), s.Items, item)...)
			}
		}
	}
	return out
}

func typesOf(kind any) []string {
	if one, ok := kind.(string); ok {
		return []string{one}
	}
	var out []string
	for _, k := range kind.([]any) {
		out = append(out, k.(string))
	}
	return out
}

func typeOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}
