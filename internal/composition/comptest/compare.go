package comptest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/wording"
)

const (
	// nameAnnotation is the name of a composed resource in its composition.
	nameAnnotation = "crossplane.io/composition-resource-name"

	maxValueText = 200
)

// Difference is a difference between what a test asserts and what is rendered.
type Difference struct {
	// Resource is the kind and the name of the resource.
	Resource string `json:"resource"`
	// Path is the path of the field, or empty for the whole resource.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

// String returns the difference in one line.
func (d Difference) String() string {
	if d.Path == "" {
		return d.Resource + ": " + d.Message
	}
	return d.Resource + ": " + d.Path + ": " + d.Message
}

// Assert returns the differences between the assertions of a test and the rendered objects.
//
// An asserted object is a part of one rendered object of the same apiVersion and kind, and of the same name and
// namespace if it has them. It is compared as `up test` compares it: objects can have further fields, lists have as many
// elements, in the same order, and null stands for a field that is not set.
func (s Spec) Assert(rendered []map[string]any) []Difference {
	var out []Difference
	for _, want := range s.AssertResources {
		out = append(out, assertOne(want, rendered)...)
	}
	for _, unwanted := range s.AbsentResources {
		for _, o := range candidates(unwanted, rendered) {
			if len(compare(unwanted, o, "", false)) == 0 {
				out = append(out, Difference{Resource: Name(o), Message: "is rendered, and must be absent"})
			}
		}
	}
	return out
}

// assertOne returns the differences from the most similar rendered object.
func assertOne(want map[string]any, rendered []map[string]any) []Difference {
	var best []Difference
	for i, o := range candidates(want, rendered) {
		found := compare(want, o, "", false)
		for j := range found {
			found[j].Resource = Name(o)
		}
		if i == 0 || len(found) < len(best) {
			best = found
		}
		if len(best) == 0 {
			return nil
		}
	}
	if best != nil {
		return best
	}
	message := "is not rendered"
	var similar []string
	for _, o := range rendered {
		if text(o, "kind") == text(want, "kind") {
			similar = append(similar, Name(o)+" of "+text(o, "apiVersion"))
		}
	}
	if len(similar) > 0 {
		message += "; rendered: " + strings.Join(similar, ", ")
	}
	return []Difference{{Resource: Name(want), Message: message}}
}

// candidates returns the rendered objects with which an assertion is compared.
func candidates(want map[string]any, rendered []map[string]any) []map[string]any {
	var out []map[string]any
	for _, o := range rendered {
		same := text(o, "apiVersion") == text(want, "apiVersion") && text(o, "kind") == text(want, "kind")
		for _, field := range []string{"name", "namespace"} {
			wanted := text(object(want["metadata"]), field)
			same = same && (wanted == "" || wanted == text(object(o["metadata"]), field))
		}
		if same {
			out = append(out, o)
		}
	}
	return out
}

// Diff returns the differences between the expected objects of a file and the rendered ones: missing ones, others, and
// fields.
func Diff(expected, rendered []map[string]any) []Difference {
	var out []Difference
	wants, gots := byKey(expected), byKey(rendered)
	for _, key := range keys(expected) {
		got, ok := gots[key]
		if !ok {
			out = append(out, Difference{Resource: Name(wants[key]), Message: "is expected, and is not rendered"})
			continue
		}
		for _, d := range compare(wants[key], got, "", true) {
			d.Resource = Name(got)
			out = append(out, d)
		}
	}
	for _, key := range keys(rendered) {
		if _, ok := wants[key]; !ok {
			out = append(out, Difference{Resource: Name(gots[key]), Message: "is rendered, and is not expected"})
		}
	}
	return out
}

// keys returns a key for each object: its kind and name, and its number among those of the same kind and name.
func keys(objects []map[string]any) []string {
	seen := map[string]int{}
	out := make([]string, len(objects))
	for i, o := range objects {
		key := text(o, "apiVersion") + " " + text(object(o["metadata"]), "namespace") + " " + Name(o)
		out[i] = fmt.Sprintf("%s %d", key, seen[key])
		seen[key]++
	}
	return out
}

func byKey(objects []map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{}
	for i, key := range keys(objects) {
		out[key] = objects[i]
	}
	return out
}

// compare returns the differences between two values. Unless they must be equal, an object can have further fields.
func compare(want, got any, path string, equal bool) []Difference {
	differ := func(format string, args ...any) []Difference {
		return []Difference{{Path: path, Message: fmt.Sprintf(format, args...)}}
	}
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return differ("want %s, got %s", short(want), short(got))
		}
		var out []Difference
		for _, key := range sortedKeys(w) {
			out = append(out, compare(w[key], g[key], join(path, key), equal)...)
		}
		if equal {
			for _, key := range sortedKeys(g) {
				if _, ok := w[key]; !ok {
					out = append(out, compare(nil, g[key], join(path, key), equal)...)
				}
			}
		}
		return out
	case []any:
		g, ok := got.([]any)
		switch {
		case !ok:
			return differ("want %s, got %s", short(want), short(got))
		case len(w) != len(g):
			return differ("want %s, got %d: %s", wording.Count(len(w), "element"), len(g), short(got))
		}
		var out []Difference
		for i := range w {
			out = append(out, compare(w[i], g[i], fmt.Sprintf("%s[%d]", path, i), equal)...)
		}
		return out
	}
	if show(want) == show(got) || sameNumber(want, got) {
		return nil
	}
	return differ("want %s, got %s", short(want), short(got))
}

// sameNumber reports whether two numbers of different types are equal.
func sameNumber(a, b any) bool {
	x, xok := number(a)
	y, yok := number(b)
	return xok && yok && x == y
}

func number(value any) (float64, bool) {
	switch v := value.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// show returns a value as JSON, and "nothing" for nil.
func show(value any) string {
	if value == nil {
		return "nothing"
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(raw)
}

// short returns a value for a message, which is cut if it is long.
func short(value any) string {
	s := []rune(show(value))
	if len(s) > maxValueText {
		return string(s[:maxValueText]) + "…"
	}
	return string(s)
}

// join returns the path of a field. The name of a field that is not a word is in brackets.
func join(path, field string) string {
	switch {
	case strings.ContainsAny(field, "./[]") || field == "":
		return path + "[" + field + "]"
	case path == "":
		return field
	}
	return path + "." + field
}

// Name returns the kind and the name of an object: its name in the composition, its own name, or the step of a result.
func Name(o map[string]any) string {
	metadata := object(o["metadata"])
	for _, name := range []string{
		text(object(metadata["annotations"]), nameAnnotation), text(metadata, "name"), text(o, "step"),
	} {
		if name != "" {
			return text(o, "kind") + " " + name
		}
	}
	return text(o, "kind")
}

func object(value any) map[string]any {
	o, _ := value.(map[string]any)
	return o
}

func text(o map[string]any, field string) string {
	s, _ := o[field].(string)
	return s
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
