package activation

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// UsesOf returns the kinds that a decoded object uses: each object with an
// apiVersion and a kind in it, as in the base of a resource or in the resources that a function requires, and the kinds
// that texts name, as in the template of a function. In a text, a kind may belong to the API version before or after
// it. So some of the kinds may not exist, and kinds that a program computes are missing. The kinds are ordered.
func UsesOf(object any) []schema.GroupKind {
	found := map[schema.GroupKind]bool{}
	use(object, found)
	return ordered(found)
}

func ordered(found map[schema.GroupKind]bool) []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(found), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
}

func use(value any, found map[schema.GroupKind]bool) {
	switch value := value.(type) {
	case map[string]any:
		version, _ := value["apiVersion"].(string)
		kind, _ := value["kind"].(string)
		if group := groupOf(version); group != "" && kind != "" {
			found[schema.GroupKind{Group: group, Kind: kind}] = true
		}
		for _, v := range value {
			use(v, found)
		}
	case []any:
		for _, v := range value {
			use(v, found)
		}
	case string:
		useText(value, found)
	}
}

// groupOf returns the group of an API version of a custom resource, and "" for others: a group of custom resources has
// a dot.
func groupOf(apiVersion string) string {
	group, version, _ := strings.Cut(apiVersion, "/")
	if version == "" || !strings.Contains(group, ".") {
		return ""
	}
	return group
}

// named matches an API version with a group, as the first submatch, or the field "kind" with its value, as the second.
var named = regexp.MustCompile(`\b((?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9-]+)/v[0-9]+(?:(?:alpha|beta)[0-9]+)?\b` +
	`|\bkind\b["'\]]*\s*(?::=|[:=])\s*["']?([A-Z][A-Za-z0-9]*)`)

// useText adds the kinds that a text names, each with the groups before and after it.
func useText(text string, found map[schema.GroupKind]bool) {
	if !strings.Contains(text, "kind") {
		return
	}
	before := ""
	var open []string // The kinds since the last group.
	for _, at := range named.FindAllStringSubmatchIndex(text, -1) {
		if at[2] >= 0 {
			before = text[at[2]:at[3]]
			for _, kind := range open {
				found[schema.GroupKind{Group: before, Kind: kind}] = true
			}
			open = nil
			continue
		}
		kind := text[at[4]:at[5]]
		open = append(open, kind)
		if before != "" {
			found[schema.GroupKind{Group: before, Kind: kind}] = true
		}
	}
}

// Uses are the kinds that something uses.
type Uses struct {
	// Kinds are ordered.
	Kinds []schema.GroupKind
	// Open reports that it may use others: a program decides that no reader of its input can see.
	Open bool
}

// composing are the kinds of the objects of a Configuration that use other kinds.
var composing = []string{"Composition", "Operation", "CronOperation", "WatchOperation"}

// UsedBy returns the kinds that the Compositions and Operations of a Configuration use. Other packages use none.
func UsedBy(pkg *xpkg.Package) (Uses, error) {
	if pkg.Meta.Kind != xpkg.Configuration {
		return Uses{}, nil
	}
	found := map[schema.GroupKind]bool{}
	open := false
	for _, o := range pkg.Objects {
		if !slices.Contains(composing, o.GVK.Kind) {
			continue
		}
		raw, err := o.JSON()
		if err != nil {
			return Uses{}, err
		}
		var object map[string]any
		if err := json.Unmarshal(raw, &object); err != nil {
			return Uses{}, err
		}
		use(object["spec"], found)
		open = open || isOpen(object["spec"])
	}
	return Uses{ordered(found), open}, nil
}

// composesNothing are the ends of the names of functions that compose no resources of kinds other than those in their
// input and those of the steps before them.
var composesNothing = []string{
	"function-auto-ready", "function-environment-configs", "function-sequencer", "function-tag-manager",
	"function-status-transformer", "function-cel-filter", "function-deletion-protection", "function-extra-resources",
	"function-patch-and-transform", "function-context-patcher",
}

// isOpen reports whether the pipeline in a spec, at any depth, has a step with a function that may compose resources of
// kinds that its input does not name.
func isOpen(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		if ref, ok := value["functionRef"].(map[string]any); ok {
			return isOpaque(ref, value["input"])
		}
		for _, v := range value {
			if isOpen(v) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, isOpen)
	}
	return false
}

func isOpaque(function map[string]any, input any) bool {
	name, _ := function["name"].(string)
	if slices.ContainsFunc(composesNothing, func(end string) bool { return strings.HasSuffix(name, end) }) {
		return false
	}
	fields, ok := input.(map[string]any)
	if !ok {
		return true
	}
	found := map[schema.GroupKind]bool{}
	for key, v := range fields {
		if key != "apiVersion" && key != "kind" {
			use(v, found)
		}
	}
	return len(found) == 0 || computes(fields)
}

// computed matches the field "kind" with a value that a template computes.
var computed = regexp.MustCompile(`\bkind\b["'\]]*\s*[:=]\s*["']?(?:\{\{|\$\{|\$\()`)

// computes reports whether a text in a value computes a kind.
func computes(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			if computes(v) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, computes)
	case string:
		return computed.MatchString(value)
	}
	return false
}
