package web

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"
)

// schema returns a JSON schema for editors and other programs: /schemas/GROUP/KIND_VERSION.json, with the kind in lower
// case.
func (h *Handler) schema(r *request) (*response, error) {
	if len(r.path) != 3 {
		return nil, ErrNotFound
	}
	name, ok := strings.CutSuffix(r.path[2], ".json")
	i := strings.LastIndexByte(name, '_')
	if !ok || i < 0 {
		return nil, ErrNotFound
	}
	row, err := kindIgnoringCase(r, r.path[1], name[:i])
	if err != nil {
		return nil, err
	}
	first, err := firstProvider(r, row[0], row[1])
	if err != nil {
		return nil, err
	}
	at, err := releaseOf(r.ctx, r.view, first.Repository, "")
	if err != nil {
		return nil, err
	}
	d, err := definitionOf(r, at, first)
	if err != nil {
		return nil, err
	}
	version := d.version(name[i+1:])
	if version == nil {
		return nil, ErrNotFound
	}
	return schemaResponse(first.Group, first.Kind, version)
}

// kindIgnoringCase returns the group and the kind for a kind in any case.
func kindIgnoringCase(r *request, group, kind string) ([2]string, error) {
	rows, err := r.view.Kinds(r.ctx, group, "", math.MaxInt)
	if err != nil {
		return [2]string{}, err
	}
	for _, k := range rows {
		if strings.EqualFold(k.Kind, kind) {
			return [2]string{k.Group, k.Kind}, nil
		}
	}
	return [2]string{}, ErrNotFound
}

// schemaResponse returns the schema of a version with the fixed values of apiVersion and kind.
func schemaResponse(group, kind string, version *apiextensionsv1.CustomResourceDefinitionVersion) (*response, error) {
	schema := map[string]any{}
	if s := versionSchema(version); s != nil {
		text, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &schema); err != nil {
			return nil, err
		}
	}
	closeObjects(schema)
	properties, _ := schema["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
	}
	properties["apiVersion"] = map[string]any{"type": "string", "const": group + "/" + version.Name}
	properties["kind"] = map[string]any{"type": "string", "const": kind}
	properties["metadata"] = map[string]any{"type": "object"}
	schema["$schema"], schema["type"], schema["properties"] = "http://json-schema.org/draft-07/schema#", "object",
		properties
	schema["title"] = kind + " (" + group + "/" + version.Name + ")"
	required, _ := schema["required"].([]any)
	for _, name := range []any{"apiVersion", "kind"} {
		if !slices.Contains(required, name) {
			required = append(required, name)
		}
	}
	schema["required"] = required
	text, err := json.MarshalIndent(schema, "", " ")
	if err != nil {
		return nil, err
	}
	return &response{mediaType: "application/schema+json", body: append(text, '\n')}, nil
}

// closeObjects forbids unknown fields of objects, which an API server drops, does not require fields with defaults,
// which it adds, and translates the extensions of Kubernetes that have an equivalent.
func closeObjects(schema map[string]any) {
	translateLimits(schema)
	if schema["x-kubernetes-int-or-string"] == true {
		delete(schema, "anyOf")
		schema["type"] = []any{"integer", "string"}
	}
	if schema["nullable"] == true {
		if t, ok := schema["type"].(string); ok {
			schema["type"] = []any{t, "null"}
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	open := schema["x-kubernetes-preserve-unknown-fields"] == true || schema["x-kubernetes-embedded-resource"] == true
	if _, ok := schema["additionalProperties"]; !ok && !open && len(properties) > 0 {
		schema["additionalProperties"] = false
	}
	if required, ok := schema["required"].([]any); ok {
		required = slices.DeleteFunc(required, func(name any) bool {
			field, _ := name.(string)
			p, _ := properties[field].(map[string]any)
			return p["default"] != nil
		})
		if schema["required"] = required; len(required) == 0 {
			delete(schema, "required")
		}
	}
	for _, p := range properties {
		if p, ok := p.(map[string]any); ok {
			closeObjects(p)
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if p, ok := schema[key].(map[string]any); ok {
			closeObjects(p)
		}
	}
}

// translateLimits writes exclusive limits as numbers, as the draft of the schema has them. A CRD states them as
// booleans beside the limit.
func translateLimits(schema map[string]any) {
	for limit, exclusive := range map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"} {
		isExclusive := schema[exclusive] == true
		delete(schema, exclusive)
		if number, ok := schema[limit]; ok && isExclusive {
			schema[exclusive] = number
			delete(schema, limit)
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := schema[key].([]any)
		for _, p := range list {
			if p, ok := p.(map[string]any); ok {
				translateRules(p)
			}
		}
	}
	if p, ok := schema["not"].(map[string]any); ok {
		translateRules(p)
	}
}

// translateRules translates the limits in a part of a schema that only has rules, which closeObjects does not change
// otherwise.
func translateRules(schema map[string]any) {
	translateLimits(schema)
	properties, _ := schema["properties"].(map[string]any)
	for _, p := range properties {
		if p, ok := p.(map[string]any); ok {
			translateRules(p)
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if p, ok := schema[key].(map[string]any); ok {
			translateRules(p)
		}
	}
}
