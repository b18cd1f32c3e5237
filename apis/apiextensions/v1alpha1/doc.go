// Package v1alpha1 defines names of version v1alpha1 of the API group
// apiextensions.crossplane.io that the package manager uses: the kinds that activate managed
// resources, and their conditions. The objects themselves are handled without Go types.
package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// Group is the API group of compositions and managed resource definitions.
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

// The states of an MRD.
const (
	// Active is the state of an MRD whose kind is served.
	Active = "Active"
	// Inactive is the state of an MRD whose kind is not served.
	Inactive = "Inactive"
)
