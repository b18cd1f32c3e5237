package revision

import (
	"maps"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// AnnotationUndo on a package identifies a running command that has written it, and that undoes this change if the package does not become
// healthy. Another command that wants the package as it is removes the annotation; then the change is not undone.
const AnnotationUndo = "xpkg.dev/undo"

// SetUndo sets the command that may undo its change of a package. Empty removes the annotation.
func SetUndo(p v1.Package, command string) {
	setAnnotation(p, AnnotationUndo, command)
}

// IsUndoable reports whether a command has marked its last change of a package as one that it may undo.
func IsUndoable(p v1.Package) bool { return p.GetAnnotations()[AnnotationUndo] != "" }

// setAnnotation sets an annotation of a package, or removes it if the value is empty.
func setAnnotation(p v1.Package, key, value string) {
	annotations := maps.Clone(p.GetAnnotations())
	switch {
	case annotations[key] == value:
		return
	case value == "":
		delete(annotations, key)
	case annotations == nil:
		annotations = map[string]string{key: value}
	default:
		annotations[key] = value
	}
	p.SetAnnotations(annotations)
}
