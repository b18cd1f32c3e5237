package revision

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// AnnotationTransaction on a package is the name and the UID of the transaction that has written it. Other writes of
// xpkg remove it, and take the package out of the transaction, which then does not return it to its former state.
const AnnotationTransaction = "xpkg.dev/transaction"

// SetTransaction sets the transaction that writes a package, as NAME/UID. Empty removes the annotation.
func SetTransaction(p v1.Package, name string) { setAnnotation(p, AnnotationTransaction, name) }

// TransactionOf returns the transaction that has written a package; empty if another client has.
func TransactionOf(p v1.Package) string { return p.GetAnnotations()[AnnotationTransaction] }

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
