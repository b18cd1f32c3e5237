package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Conditioned is an object with conditions.
//
// +kubebuilder:object:generate=false
type Conditioned interface {
	// GetCondition returns the condition of the type, or one with the status Unknown if
	// there is none.
	GetCondition(t ConditionType) Condition
	// SetConditions replaces the conditions of the same types. A condition whose
	// ObservedGeneration is zero gets the generation of the object. The time of the last
	// transition changes to now only if the status changes.
	SetConditions(now metav1.Time, conditions ...Condition)
}

// Package is the interface common to Provider, Configuration and Function. The returned
// pointers point into the object: writing through them changes it.
//
// +kubebuilder:object:generate=false
type Package interface {
	metav1.Object
	runtime.Object
	Conditioned

	// PackageKind returns the kind, also for an object of a typed client, which has no
	// TypeMeta.
	PackageKind() string
	// PackageSpec returns the common part of the spec.
	PackageSpec() *PackageSpec
	// PackageStatus returns the common part of the status.
	PackageStatus() *PackageStatus
	// RuntimeSpec returns the runtime fields of the spec. It returns nil for a
	// Configuration, which has no runtime.
	RuntimeSpec() *PackageRuntimeSpec

	// NewRevision returns an empty revision of the kind that belongs to this kind
	// of package, with its type set.
	NewRevision() PackageRevision
	// NewRevisionList returns an empty list of revisions of that kind.
	NewRevisionList() PackageRevisionList
}

// PackageRevision is the interface common to ProviderRevision, ConfigurationRevision and
// FunctionRevision. The returned pointers point into the object: writing through them
// changes it.
//
// +kubebuilder:object:generate=false
type PackageRevision interface {
	metav1.Object
	runtime.Object
	Conditioned

	// PackageKind returns the kind of the package of the revision, for example Provider.
	PackageKind() string
	// RevisionSpec returns the common part of the spec.
	RevisionSpec() *PackageRevisionSpec
	// RevisionStatus returns the common part of the status.
	RevisionStatus() *PackageRevisionStatus
	// RuntimeSpec returns the runtime fields of the spec. It returns nil for a
	// ConfigurationRevision, which has no runtime.
	RuntimeSpec() *PackageRevisionRuntimeSpec
	// RuntimeStatus returns the runtime fields of the status. It returns nil if
	// RuntimeSpec does.
	RuntimeStatus() *PackageRevisionRuntimeStatus
}

// PackageList is a list of one kind of package.
//
// +kubebuilder:object:generate=false
type PackageList interface {
	metav1.ListInterface
	runtime.Object

	// Packages returns the items. They are not copies.
	Packages() []Package
}

// PackageRevisionList is a list of one kind of revision.
//
// +kubebuilder:object:generate=false
type PackageRevisionList interface {
	metav1.ListInterface
	runtime.Object

	// Revisions returns the items. They are not copies.
	Revisions() []PackageRevision
}

var (
	_ Package = (*Provider)(nil)
	_ Package = (*Configuration)(nil)
	_ Package = (*Function)(nil)

	_ PackageRevision = (*ProviderRevision)(nil)
	_ PackageRevision = (*ConfigurationRevision)(nil)
	_ PackageRevision = (*FunctionRevision)(nil)

	_ PackageList = (*ProviderList)(nil)
	_ PackageList = (*ConfigurationList)(nil)
	_ PackageList = (*FunctionList)(nil)

	_ PackageRevisionList = (*ProviderRevisionList)(nil)
	_ PackageRevisionList = (*ConfigurationRevisionList)(nil)
	_ PackageRevisionList = (*FunctionRevisionList)(nil)
)
