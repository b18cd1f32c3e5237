package xpkg

import (
	"maps"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrReservedKey is the code for reserved labels and annotations in a package.
var ErrReservedKey = errcode.Code{
	Name: "ReservedKey", Class: errcode.Invalid,
	Cause: "The package contains a label or annotation that is reserved for users and package managers. It is ignored at install.",
	Fix:   "Remove the label or annotation. Users set such annotations on the installed package.",
}

// ReservedKey reports whether only users and package managers may set a label or annotation: otherwise a
// package could approve itself, mark an object as adopted, or pause its own reconciliation.
func ReservedKey(key string) bool {
	return strings.HasPrefix(key, "xpkg.dev/") || key == "crossplane.io/paused"
}

// WithoutReserved returns labels or annotations of a package without the reserved ones.
func WithoutReserved(all map[string]string) map[string]string {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(key, _ string) bool { return ReservedKey(key) })
	return out
}

// ReservedKeys returns the reserved keys among labels or annotations, sorted.
func ReservedKeys(all map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(key string) bool { return !ReservedKey(key) })
}
