package revision

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// setAnnotation sets an annotation of an object, or removes it if the value is empty.
func setAnnotation(o metav1.Object, key, value string) {
	annotations := maps.Clone(o.GetAnnotations())
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
	o.SetAnnotations(annotations)
}
