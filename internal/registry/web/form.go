package web

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// A formSection is a section of the form that a UI schema of the first generation describes. It is shown read-only.
type formSection struct {
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Items       []formItem `json:"items"`
}

// A formItem is an input of a form.
type formItem struct {
	Name        string           `json:"name"`
	ControlType string           `json:"controlType"`
	Type        string           `json:"type"`
	Path        any              `json:"path"`
	Title       string           `json:"title"`
	Description string           `json:"description"`
	Default     any              `json:"default"`
	Enum        []any            `json:"enum"`
	Validation  []map[string]any `json:"validation"`

	// ID, Value, Options, Rules and Where are derived from the other fields.
	ID      string   `json:"-"`
	Value   string   `json:"-"`
	Options []string `json:"-"`
	Rules   []string `json:"-"`
	Where   string   `json:"-"`
}

// Limits of forms.
const (
	maxForm      = 64 << 10
	maxFormItems = 200
)

// parseForm returns the sections of a UI schema. A schema that cannot be read has none: it only helps to fill in an
// object.
func parseForm(schema string) []formSection {
	if schema == "" || len(schema) > maxForm {
		return nil
	}
	var out []formSection
	items := 0
	for _, text := range strings.Split("\n"+schema, "\n---") {
		var doc struct {
			ConfigSections []formSection `json:"configSections"`
		}
		if yaml.Unmarshal([]byte(text), &doc) != nil {
			continue
		}
		for _, s := range doc.ConfigSections {
			for i := range s.Items {
				items++
				s.Items[i].derive(items)
			}
			if items > maxFormItems {
				return nil
			}
			out = append(out, s)
		}
	}
	return out
}

func (f *formItem) derive(number int) {
	f.ID = fmt.Sprintf("form-%d", number)
	f.Value, f.Where = plainValue(f.Default), plainValue(f.Path)
	for _, e := range f.Enum {
		f.Options = append(f.Options, plainValue(e))
	}
	if f.Title == "" {
		f.Title = f.Name
	}
	for _, v := range f.Validation {
		for key, value := range v {
			if key != "customError" {
				f.Rules = append(f.Rules, key+": "+plainValue(value))
			}
		}
	}
}

// plainValue returns a value as text: the single item of a list, several ones with commas.
func plainValue(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = plainValue(v[i])
		}
		return strings.Join(parts, ", ")
	}
	out, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(out)
}
