package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: v1.Group, Version: "v1beta1"}

// The kinds that exist in this version only.
const (
	LockKind                    = "Lock"
	ImageConfigKind             = "ImageConfig"
	DeploymentRuntimeConfigKind = "DeploymentRuntimeConfig"
)

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Function{}, &FunctionList{}, &FunctionRevision{}, &FunctionRevisionList{},
		&Lock{}, &LockList{},
		&ImageConfig{}, &ImageConfigList{},
		&DeploymentRuntimeConfig{}, &DeploymentRuntimeConfigList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
