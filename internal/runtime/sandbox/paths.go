package sandbox

import (
	"maps"
	"path"
	"slices"
	"strings"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// translation maps file paths of a runtime to host paths, for a runtime that sees the
// root of the host instead of its own.
type translation map[string]string

// translate maps the paths of files, and of all their parent folders.
func translate(given files, paths []string) translation {
	t := translation{}
	for _, p := range paths {
		for ; p != "/"; p = path.Dir(p) {
			t[p] = given.path(p)
		}
	}
	return t
}

// value translates the value of a variable or an argument if it is such a path, or if the part
// after its first "=" is one.
func (t translation) value(v string) string {
	if to, ok := t[cleaned(v)]; ok {
		return to
	}
	if name, value, ok := strings.Cut(v, "="); ok {
		if to, ok := t[cleaned(value)]; ok {
			return name + "=" + to
		}
	}
	return v
}

func (t translation) all(values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = t.value(v)
	}
	return out
}

func cleaned(p string) string {
	if !path.IsAbs(p) {
		return ""
	}
	return path.Clean(p)
}
