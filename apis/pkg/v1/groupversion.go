package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of packages and their revisions.
const Group = "pkg.crossplane.io"

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1"}

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Provider{}, &ProviderList{}, &ProviderRevision{}, &ProviderRevisionList{},
		&Configuration{}, &ConfigurationList{}, &ConfigurationRevision{}, &ConfigurationRevisionList{},
		&Function{}, &FunctionList{}, &FunctionRevision{}, &FunctionRevisionList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
