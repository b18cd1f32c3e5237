package v1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of package metadata.
const Group = "meta.pkg.crossplane.io"

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1"}

// The kinds of this version.
const (
	ProviderKind      = "Provider"
	ConfigurationKind = "Configuration"
	FunctionKind      = "Function"
)

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Provider{}, &Configuration{}, &Function{})
	return nil
}
