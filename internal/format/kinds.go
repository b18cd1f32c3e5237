package format

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// Codes for objects that a package may not hold.
var (
	ErrObjectNotAllowed = failure.Register(failure.Code{
		Name: "ObjectNotAllowed", Class: failure.Invalid,
		Cause: "The package holds an object that packages of its kind may not hold.",
		Fix:   "Take the object out of the package, or build a package of the kind that may hold it.",
	})
	ErrUnknownKind = failure.Register(failure.Code{
		Name: "UnknownKind", Class: failure.Invalid,
		Cause: "The package holds an object that no package may hold.",
		Fix:   "Take the object out of the package; files that do not belong to it can be left out with --ignore.",
	})
	ErrKindAlias = failure.Register(failure.Code{
		Name: "KindAlias", Class: failure.Invalid,
		Cause: "The object's kind is a name of the specification that no API server knows.",
		Fix:   "Write ValidatingWebhookConfiguration.",
	})
)

// Groups of the objects that packages hold.
const (
	groupCRD       = "apiextensions.k8s.io"
	groupComposite = "apiextensions.crossplane.io"
	groupOps       = "ops.crossplane.io"
	groupAdmission = "admissionregistration.k8s.io"

	kindCRD = "CustomResourceDefinition"
)

// allowed are the kinds of objects that each kind of package may hold (xpkg
// specification, package.yaml Contents), and those that came after it.
var allowed = map[Kind][]schema.GroupKind{
	Provider: {
		{Group: groupCRD, Kind: kindCRD},
		{Group: groupAdmission, Kind: "ValidatingWebhookConfiguration"},
		{Group: groupAdmission, Kind: "MutatingWebhookConfiguration"},
		{Group: groupComposite, Kind: "ManagedResourceDefinition"},
	},
	Configuration: {
		{Group: groupComposite, Kind: "CompositeResourceDefinition"},
		{Group: groupComposite, Kind: "Composition"},
		{Group: groupComposite, Kind: "ManagedResourceActivationPolicy"},
		{Group: groupOps, Kind: "Operation"},
		{Group: groupOps, Kind: "CronOperation"},
		{Group: groupOps, Kind: "WatchOperation"},
	},
	Function: {
		{Group: groupCRD, Kind: kindCRD},
	},
}

// admissionAlias is how the specification calls a ValidatingWebhookConfiguration.
var admissionAlias = schema.GroupKind{Group: groupAdmission, Kind: "AdmissionWebhookConfiguration"}

// checkKind says what is wrong with an object of this type in a package of this
// kind; nil when it may be there.
func checkKind(kind Kind, gvk schema.GroupVersionKind) *fault {
	if slices.Contains(allowed[kind], gvk.GroupKind()) {
		return nil
	}
	code := ErrObjectNotAllowed
	switch gvk.Group {
	case groupCRD, groupComposite, groupOps, groupAdmission:
	default:
		code = ErrUnknownKind
	}
	return &fault{code: code, what: fmt.Sprintf("a %s may not hold an object of %s; it may hold %s",
		kind, safe(gvk.GroupVersion().String()), allowedKinds(kind))}
}

func allowedKinds(kind Kind) string {
	var names []string
	for _, gk := range allowed[kind] {
		names = append(names, gk.Kind)
	}
	return strings.Join(names, ", ")
}
