// Package v1alpha1 holds the API of the example provider: Greetings, and the
// ProviderConfig that they share.
//
// +kubebuilder:object:generate=true
// +groupName=hello.xpkg.dev
// +versionName=v1alpha1
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "hello.xpkg.dev", Version: "v1alpha1"}

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Greeting{}, &GreetingList{}, &ProviderConfig{}, &ProviderConfigList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
