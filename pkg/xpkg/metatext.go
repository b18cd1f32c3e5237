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
	"permissionRequests", "crd",
}

// nearField returns the known field with the spelling closest to the last part of a path,
// and "" if none is close.
func nearField(path string) string {
	return spelling.Field(path[strings.LastIndexByte(path, '.')+1:], metaFields)
}

// jsonType returns the name of the JSON type in an error of encoding/json.
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

// goType returns the name of the expected JSON type.
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

// join joins two parts of a path.
func join(a, b string) string {
	if a == "" || b == "" || b[0] == '[' {
		return a + b
	}
	return a + "." + b
}
