package v1

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RevisionState is what a revision should be.
type RevisionState string

// The states of a revision.
const (
	// RevisionActive makes the revision the controller of its objects. A package
	// has at most one active revision.
	RevisionActive RevisionState = "Active"
	// RevisionInactive makes the revision a mere owner of its objects.
	RevisionInactive RevisionState = "Inactive"
)

// PackageRevisionSpec is what the specs of all kinds of revision have in common.
type PackageRevisionSpec struct {
	// DesiredState of the revision: Active or Inactive.
	DesiredState RevisionState `json:"desiredState"`

	// Image is the reference of the package, as the package asked for it.
	Image string `json:"image"`

	// Digest is the content of this revision: what the reference was resolved
	// to, once, when the revision was made. It stays the same for as long as the
	// revision lives. A revision without it was made by another package manager,
	// and is resolved when it is next looked at.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:Pattern=`^sha256:[a-f0-9]{64}$`
	Digest string `json:"digest,omitempty"`

	// PackagePullSecrets are names of secrets, in the namespace of the package
	// manager, with credentials for the registry. They are handed to the runtime
	// of the package, and not to its dependencies.
	// +optional
	PackagePullSecrets []corev1.LocalObjectReference `json:"packagePullSecrets,omitempty"`

	// PackagePullPolicy says when content is downloaded. It also holds for the
	// image of the runtime. Default is IfNotPresent.
	// +optional
	// +kubebuilder:default=IfNotPresent
	PackagePullPolicy corev1.PullPolicy `json:"packagePullPolicy,omitempty"`

	// Revision is the place of this revision in the order of activation: the
	// highest number was activated last, and the lowest is the first to be
	// garbage collected.
	Revision int64 `json:"revision"`

	// IgnoreCrossplaneConstraints installs the package without asking whether it
	// fits the version of Crossplane that is installed. Default is false.
	// +optional
	// +kubebuilder:default=false
	IgnoreCrossplaneConstraints bool `json:"ignoreCrossplaneConstraints,omitempty"`

	// SkipDependencyResolution installs the package without its dependencies,
	// which it may need in order to work. Default is false.
	// +optional
	// +kubebuilder:default=false
	SkipDependencyResolution bool `json:"skipDependencyResolution,omitempty"`

	// CommonLabels are put on every object that the package installs.
	// +optional
	CommonLabels map[string]string `json:"commonLabels,omitempty"`

	// CommonAnnotations are put on every object that the package installs.
	// +optional
	CommonAnnotations map[string]string `json:"commonAnnotations,omitempty"`
}

// PackageRevisionStatus is what the statuses of all kinds of revision have in
// common.
type PackageRevisionStatus struct {
	ConditionedStatus `json:",inline"`

	// ObservedGeneration is the metadata.generation that this status speaks
	// about. While it is lower than the present one, the package manager has not
	// yet looked at the last change of the spec.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ObjectRefs are the objects that the revision owns.
	// +optional
	ObjectRefs []TypedReference `json:"objectRefs,omitempty"`

	// FoundDependencies is the number of dependencies, direct and indirect.
	// +optional
	FoundDependencies int64 `json:"foundDependencies,omitempty"`
	// InstalledDependencies is how many of them are installed.
	// +optional
	InstalledDependencies int64 `json:"installedDependencies,omitempty"`
	// InvalidDependencies is how many are installed at a version that the
	// package does not accept.
	// +optional
	InvalidDependencies int64 `json:"invalidDependencies,omitempty"`
	// AbsentOptionalDependencies are packages that this one would work with, each
	// with the versions that it accepts, and that are not installed. Nothing waits
	// for them.
	// +optional
	AbsentOptionalDependencies []string `json:"absentOptionalDependencies,omitempty"`

	// AppliedImageConfigRefs are the image configs that were used for this
	// revision, and what for.
	// +optional
	AppliedImageConfigRefs []ImageConfigRef `json:"appliedImageConfigRefs,omitempty"`

	// ResolvedImage is the reference that was asked of a registry. It differs
	// from spec.image where an image config rewrote it.
	// +optional
	ResolvedImage string `json:"resolvedImage,omitempty"`

	// Capabilities of the package: words that mean something to those who use
	// it, such as composition or safe-start.
	// +optional
	Capabilities []string `json:"capabilities,omitempty"`

	// PermissionRequests are rights that the package asks for its runtime, beyond
	// those over its own resources.
	// +optional
	PermissionRequests []rbacv1.PolicyRule `json:"permissionRequests,omitempty"`

	// UnapprovedPermissions are rights that the revision asks for beyond those of
	// the revision before it, while it waits until somebody approves them.
	// +optional
	UnapprovedPermissions []rbacv1.PolicyRule `json:"unapprovedPermissions,omitempty"`
}

// TypedReference names a cluster-scoped object.
type TypedReference struct {
	// APIVersion of the referenced object.
	APIVersion string `json:"apiVersion"`
	// Kind of the referenced object.
	Kind string `json:"kind"`
	// Name of the referenced object.
	Name string `json:"name"`
	// UID of the referenced object.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Generation is the metadata.generation of the object after the package
	// manager last wrote it. An object with another one was changed by somebody
	// else.
	// +optional
	Generation int64 `json:"generation,omitempty"`
}
