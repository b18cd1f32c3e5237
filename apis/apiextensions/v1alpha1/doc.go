// Package v1alpha1 names the kinds and conditions that the package manager uses of version
// v1alpha1 of the API group apiextensions.crossplane.io: the kinds that switch
// managed resources on and off, and their conditions. The objects themselves are
// handled without Go types.
package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// Group is the API group of composition and of managed resources.
const Group = "apiextensions.crossplane.io"

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// The kinds of this version.
const (
	// ManagedResourceDefinitionKind is the kind of an MRD, which defines a managed resource and
	// becomes a CustomResourceDefinition when it is activated.
	ManagedResourceDefinitionKind = "ManagedResourceDefinition"
	// ManagedResourceActivationPolicyKind is the kind of a policy that activates MRDs by name.
	ManagedResourceActivationPolicyKind = "ManagedResourceActivationPolicy"
)
