package xpkg

import (
	"slices"

	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/yamldoc"
)

// AnnotationOptional on the metadata of a package lists optional dependencies, as YAML or
// JSON with the items of spec.dependsOn. They are not installed automatically, but an
// installed one must have an accepted version. It is an annotation because other package
// managers would install every package in a field.
const AnnotationOptional = "meta.xpkg.dev/optional-dependencies"

// ErrInvalidOptional is the code for an annotation that lists no dependencies.
var ErrInvalidOptional = errcode.Code{
	Name: "InvalidOptionalDependencies", Class: errcode.Invalid,
	Cause: "The annotation meta.xpkg.dev/optional-dependencies is not a list like spec.dependsOn, names a kind, or names a package that is in spec.dependsOn too.",
	Fix:   "Write a YAML list with the items of spec.dependsOn, and name each package in one of the two.",
}

// optional reads the optional dependencies.
func (r *metaReader) optional(text string) []dependency.Dependency {
	if text == "" {
		return nil
	}
	path := "metadata.annotations[" + AnnotationOptional + "]"
	value := newDocument("", 1, 0, []byte(text), yamldoc.NewReader(r.limits.yaml()))
	list, err := value.canonical()
	if err != nil {
		r.fault(ErrInvalidOptional, path, "%s: %s", path, err)
		return nil
	}
	var wire []wireDependency
	unknown, err := kjson.UnmarshalStrict(list, &wire)
	if err != nil {
		r.typeFault(err, path)
		return nil
	}
	for _, u := range unknown {
		r.unknown(u, path)
	}
	if slices.ContainsFunc(wire, func(d wireDependency) bool { return d.CRD != "" }) {
		r.fault(ErrInvalidOptional, path, "%s: a kind cannot be an optional dependency", path)
	}
	out := r.dependencies(path, wire)
	for i := range out {
		out[i].Optional = true
		if slices.ContainsFunc(r.meta.DependsOn, func(d dependency.Dependency) bool { return d.Package == out[i].Package }) {
			r.fault(ErrInvalidOptional, path, "%s: %.200q is in spec.dependsOn too", path, out[i].Package)
		}
	}
	return out
}
