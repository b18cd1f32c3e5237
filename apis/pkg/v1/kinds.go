package v1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kinds of this version.
const (
	ProviderKind      = "Provider"
	ConfigurationKind = "Configuration"
	FunctionKind      = "Function"

	ProviderRevisionKind      = "ProviderRevision"
	ConfigurationRevisionKind = "ConfigurationRevision"
	FunctionRevisionKind      = "FunctionRevision"
)

// PackageKinds returns the kinds of package in display order.
func PackageKinds() []string {
	return []string{ProviderKind, ConfigurationKind, FunctionKind}
}

// KindNamed returns the kind of package that a word such as "provider", "Provider" or
// "providers" names. It returns "" for any other word.
func KindNamed(word string) string {
	for _, kind := range PackageKinds() {
		if strings.EqualFold(word, kind) || strings.EqualFold(word, kind+"s") {
			return kind
		}
	}
	return ""
}

// ObjectName returns the name of an object as users and commands write it, such as provider/hello.
func ObjectName(kind, name string) string { return strings.ToLower(kind) + "/" + name }

// NewPackage returns an empty package of the kind, with its type set. It returns nil for
// a kind that is not one of PackageKinds.
func NewPackage(kind string) Package {
	switch kind {
	case ProviderKind:
		return &Provider{TypeMeta: typeMeta(kind)}
	case ConfigurationKind:
		return &Configuration{TypeMeta: typeMeta(kind)}
	case FunctionKind:
		return &Function{TypeMeta: typeMeta(kind)}
	}
	return nil
}

// NewPackageList returns an empty list of packages of the kind, or nil for a kind
// that is not one of PackageKinds.
func NewPackageList(kind string) PackageList {
	switch kind {
	case ProviderKind:
		return &ProviderList{}
	case ConfigurationKind:
		return &ConfigurationList{}
	case FunctionKind:
		return &FunctionList{}
	}
	return nil
}

// RevisionKind returns the kind of revision for a kind of package, for example
// ProviderRevision for Provider.
func RevisionKind(packageKind string) string { return packageKind + "Revision" }

// typeMeta returns the TypeMeta of objects of the kind.
func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: kind}
}
