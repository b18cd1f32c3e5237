package xpkg

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Codes for objects that a package may not hold.
var (
	ErrObjectNotAllowed = errcode.Code{
		Name: "ObjectNotAllowed", Class: errcode.Invalid,
		Cause: "The package contains an object that packages of its kind must not contain.",
		Fix:   "Take the object out of the package, or build a package of a kind that may contain it.",
	}
	ErrUnknownKind = errcode.Code{
		Name: "UnknownKind", Class: errcode.Invalid,
		Cause: "The package contains an object that no package may contain.",
		Fix:   "Take the object out of the package; files that do not belong to it can be left out with --ignore.",
	}
	ErrKindAlias = errcode.Code{
		Name: "KindAlias", Class: errcode.Invalid,
		Cause: "The object's kind is a name of the specification that no API server knows.",
		Fix:   "Write ValidatingWebhookConfiguration.",
	}
)

// Groups of the objects that packages hold.
const (
	groupCRD       = "apiextensions.k8s.io"
	groupComposite = "apiextensions.crossplane.io"
	groupOps       = "ops.crossplane.io"
	groupAdmission = "admissionregistration.k8s.io"

	kindCRD = "CustomResourceDefinition"
	kindXRD = "CompositeResourceDefinition"
	kindMRD = "ManagedResourceDefinition"
)

// allowed lists the kinds of objects that each kind of package may contain (xpkg
// specification, package.yaml Contents), including later additions.
var allowed = map[Kind][]schema.GroupKind{
	Provider: {
		{Group: groupCRD, Kind: kindCRD},
		{Group: groupAdmission, Kind: "ValidatingWebhookConfiguration"},
		{Group: groupAdmission, Kind: "MutatingWebhookConfiguration"},
		{Group: groupComposite, Kind: kindMRD},
	},
	Configuration: {
		{Group: groupComposite, Kind: kindXRD},
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

// checkKind returns a fault if a package of the kind must not contain objects of the
// type, and nil otherwise.
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
