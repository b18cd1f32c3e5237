package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: v1.Group, Version: "v1alpha1"}

// ControllerConfigKind is the only kind of this version.
const ControllerConfigKind = "ControllerConfig"

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &ControllerConfig{}, &ControllerConfigList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
