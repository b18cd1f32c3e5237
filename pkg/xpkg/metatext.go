package xpkg

import (
	"reflect"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/spelling"
)

// metaFields are the fields of the specification, for suggesting corrections.
var metaFields = []string{
	"apiVersion", "kind", "metadata", "spec", "name", "labels", "annotations", "crossplane", "version",
	"dependsOn", "provider", "configuration", "function", "package", "capabilities", "controller", "image",
	"permissionRequests",
}

// nearField is the known field that a path's last part is most likely to mean;
// nothing when none is near.
func nearField(path string) string {
	name := path[strings.LastIndexByte(path, '.')+1:]
	const longest = 40
	if len(name) > longest {
		return ""
	}
	best, bestDistance := "", 3
	for _, f := range metaFields {
		if d := spelling.Distance(strings.ToLower(name), strings.ToLower(f)); d < bestDistance {
			best, bestDistance = f, d
		}
	}
	if len(name) < 4 && bestDistance > 1 {
		return ""
	}
	return best
}

// jsonType names the JSON value that encoding/json found.
func jsonType(value string) string {
	switch word, _, _ := strings.Cut(value, " "); word {
	case "object":
		return "a mapping"
	case "array":
		return "a list"
	case "bool":
		return "a boolean"
	case "number":
		return "a number"
	}
	return "a " + value
}

// goType returns the name of the type that encoding/json expected.
func goType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.String:
		return "a string"
	}
	return "a " + t.Kind().String()
}

// join puts two parts of a path together.
func join(a, b string) string {
	if a == "" || b == "" || b[0] == '[' {
		return a + b
	}
	return a + "." + b
}
