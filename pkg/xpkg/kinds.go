package xpkg

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/kinds"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/yamldoc"
)

// Codes for objects that a package must not contain.
var (
	ErrObjectNotAllowed = errcode.Code{
		Name: "ObjectNotAllowed", Class: errcode.Invalid,
		Cause: "The package contains an object that packages of its kind must not contain.",
		Fix:   "Remove the object from the package, or build a package of a kind that can contain it.",
	}
	ErrUnknownKind = errcode.Code{
		Name: "UnknownKind", Class: errcode.Invalid,
		Cause: "The package contains an object that is not allowed in any package.",
		Fix:   "Remove the object from the package; --ignore omits files that do not belong to it.",
	}
	ErrKindAlias = errcode.Code{
		Name: "KindAlias", Class: errcode.Invalid,
		Cause: "The object's kind is a name of the specification that is not served by any API server.",
		Fix:   "Write ValidatingWebhookConfiguration.",
	}
)

// allowed lists the kinds of objects that each kind of package may contain (xpkg
// specification, "package.yaml Contents", with later additions).
var allowed = map[Kind][]schema.GroupKind{
	Provider: {
		{Group: kinds.GroupCRD, Kind: kinds.CRD},
		{Group: kinds.GroupAdmission, Kind: kinds.ValidatingWebhook},
		{Group: kinds.GroupAdmission, Kind: kinds.MutatingWebhook},
		{Group: kinds.GroupComposition, Kind: kinds.MRD},
	},
	Configuration: {
		{Group: kinds.GroupComposition, Kind: kinds.XRD},
		{Group: kinds.GroupComposition, Kind: kinds.Composition},
		{Group: kinds.GroupComposition, Kind: kinds.MRAP},
		{Group: kinds.GroupOperation, Kind: kinds.Operation},
		{Group: kinds.GroupOperation, Kind: kinds.CronOperation},
		{Group: kinds.GroupOperation, Kind: kinds.WatchOperation},
	},
	Function: {
		{Group: kinds.GroupCRD, Kind: kinds.CRD},
	},
}

// admissionAlias is the specification's name for a ValidatingWebhookConfiguration.
var admissionAlias = schema.GroupKind{Group: kinds.GroupAdmission, Kind: "AdmissionWebhookConfiguration"}

// checkKind returns a fault if a package of the kind must not contain objects of the
// type, and nil otherwise.
func checkKind(kind Kind, gvk schema.GroupVersionKind) *yamldoc.Fault {
	if slices.Contains(allowed[kind], gvk.GroupKind()) {
		return nil
	}
	code := ErrObjectNotAllowed
	switch gvk.Group {
	case kinds.GroupCRD, kinds.GroupComposition, kinds.GroupOperation, kinds.GroupAdmission:
	default:
		code = ErrUnknownKind
	}
	return &yamldoc.Fault{Code: code, What: fmt.Sprintf("a %s must not contain an object of %s; it can contain %s",
		kind, safe(gvk.GroupVersion().String()), allowedKinds(kind))}
}

func allowedKinds(kind Kind) string { return kindNames(allowed[kind]) }

func kindNames(kinds []schema.GroupKind) string {
	var names []string
	for _, gk := range kinds {
		names = append(names, gk.Kind)
	}
	return strings.Join(names, ", ")
}
