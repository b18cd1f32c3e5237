// Package fields describes the fields of a CRD for readers: a tree of fields with types, defaults and constraints in
// words.
//
// The paths of fields equal the paths of package crddiff: .spec.forProvider.tags[*].key, in which [*] stands for the
// items of a list and the values of a map. A list and a map of objects have the fields of their items as children.
//
// The package is pure. The size of its input is limited by the reader of packages; the depth of a tree is limited
// here.
package fields
