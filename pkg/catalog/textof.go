package catalog

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Limits of the texts of a package.
const (
	maxReadme      = 2_000 // bytes
	maxDescription = 200   // bytes
	maxFields      = 2_000 // of one kind
	maxSchemaDepth = 64
)

// TextOf returns the texts of a package: the beginning of its readme, and for each kind the first sentence of its
// description and the names of its fields. The error is the error of reading an object.
func TextOf(repository string, pkg *xpkg.Package) (*Text, error) {
	t := &Text{
		Repository: oci.RepositoryName(repository), Readme: clip(pkg.Meta.Annotations[xpkg.AnnotationReadme], maxReadme),
	}
	for _, o := range pkg.Objects {
		definitions, err := o.Definitions()
		if err != nil {
			return nil, err
		}
		if len(definitions) == 0 {
			continue
		}
		text, err := o.JSON()
		if err != nil {
			return nil, err
		}
		description, fields := schemaTexts(text)
		for _, d := range definitions {
			t.Kinds = append(t.Kinds, KindText{Group: d.Group, Kind: d.Kind, Description: description, Fields: fields})
		}
	}
	slices.SortStableFunc(
		t.Kinds, func(a, b KindText) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind)) },
	)
	t.Kinds = slices.CompactFunc(t.Kinds, func(a, b KindText) bool { return a.Group == b.Group && a.Kind == b.Kind })
	if t.empty() {
		return nil, nil
	}
	return t, nil
}

// textSchema is the part of a schema that has texts.
type textSchema struct {
	Description          string                `json:"description"`
	Properties           map[string]textSchema `json:"properties"`
	Items                json.RawMessage       `json:"items"`
	AdditionalProperties json.RawMessage       `json:"additionalProperties"`
}

// schemaTexts returns the description and the fields of the versions of a CRD, XRD or MRD. Parts that cannot be read
// have none.
func schemaTexts(text []byte) (description string, fields []string) {
	type version struct {
		Schema struct {
			OpenAPI textSchema `json:"openAPIV3Schema"`
		} `json:"schema"`
	}
	var object struct {
		Spec struct {
			Versions   []version `json:"versions"`
			Validation struct {
				OpenAPI textSchema `json:"openAPIV3Schema"`
			} `json:"validation"`
		} `json:"spec"`
	}
	if json.Unmarshal(text, &object) != nil {
		return "", nil
	}
	names := map[string]bool{}
	schemas := []textSchema{object.Spec.Validation.OpenAPI}
	for _, v := range object.Spec.Versions {
		schemas = append(schemas, v.Schema.OpenAPI)
	}
	for i := range schemas {
		description = cmp.Or(description, clip(wording.FirstSentence(schemas[i].Description, maxDescription), maxDescription))
		schemas[i].collect(names, 0)
	}
	for _, ofEveryKind := range []string{"apiVersion", "kind", "metadata", "spec", "status"} {
		delete(names, ofEveryKind)
	}
	fields = slices.Sorted(maps.Keys(names))
	return description, fields[:min(len(fields), maxFields)]
}

// collect adds the names of the fields.
func (s *textSchema) collect(names map[string]bool, depth int) {
	if depth > maxSchemaDepth {
		return
	}
	for name, p := range s.Properties {
		if len(name) <= maxWord && clip(name, maxWord) == name {
			names[name] = true
		}
		p.collect(names, depth+1)
	}
	for _, raw := range []json.RawMessage{s.Items, s.AdditionalProperties} {
		var below textSchema
		if len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, &below) == nil {
			below.collect(names, depth+1)
		}
	}
}

// clip returns the text on one line with at most most bytes: control and formatting characters and invalid bytes are
// dropped, and runs of white space become one space.
func clip(s string, most int) string {
	if len(s) > 4*most {
		s = s[:4*most]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError, !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
	return wording.ClipWords(strings.Join(strings.Fields(s), " "), most)
}
