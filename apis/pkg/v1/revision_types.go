package v1

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RevisionState is the desired state of a revision.
type RevisionState string

// Revision states.
const (
	// RevisionActive makes the package the controller of the objects of the revision. A package
	// has at most one active revision.
	RevisionActive RevisionState = "Active"
	// RevisionInactive releases the objects of the revision that the active revision does not contain: the package
	// is an owner of them, but not their controller.
	RevisionInactive RevisionState = "Inactive"
)

// PackageRevisionSpec holds the spec fields common to all kinds of revision.
type PackageRevisionSpec struct {
	// DesiredState of the revision: Active or Inactive.
	DesiredState RevisionState `json:"desiredState"`

	// Image is the reference of the package, as in spec.package of the package.
	Image string `json:"image"`

	// Digest identifies the content of this revision. The reference was resolved
	// to it once, when the revision was created. It never changes. A revision
	// without it was created by another package manager
	// and is resolved with its next reconciliation.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:Pattern=`^sha256:[a-f0-9]{64}$`
	Digest string `json:"digest,omitempty"`

	// PackagePullSecrets are names of secrets, in the namespace of the package
	// manager, with credentials for the registry. They are passed to the runtime
	// of the package, and not to its dependencies.
	// +optional
	PackagePullSecrets []corev1.LocalObjectReference `json:"packagePullSecrets,omitempty"`

	// PackagePullPolicy controls when content is downloaded. It also applies to the image of the runtime.
	// Default is IfNotPresent.
	// +optional
	// +kubebuilder:default=IfNotPresent
	PackagePullPolicy corev1.PullPolicy `json:"packagePullPolicy,omitempty"`

	// Revision is the place of this revision in the order of activation: the
	// highest number was activated last, and the lowest is the first to be
	// garbage collected.
	Revision int64 `json:"revision"`

	// IgnoreCrossplaneConstraints installs the package without checking whether it supports the installed
	// version of Crossplane. Default is false.
	// +optional
	// +kubebuilder:default=false
	IgnoreCrossplaneConstraints bool `json:"ignoreCrossplaneConstraints,omitempty"`

	// SkipDependencyResolution installs the package without its dependencies, and does not check them.
	// Default is false.
	// +optional
	// +kubebuilder:default=false
	SkipDependencyResolution bool `json:"skipDependencyResolution,omitempty"`

	// CommonLabels are added to every object that the package installs.
	// +optional
	CommonLabels map[string]string `json:"commonLabels,omitempty"`

	// CommonAnnotations are added to every object that the package installs.
	// +optional
	CommonAnnotations map[string]string `json:"commonAnnotations,omitempty"`
}

// PackageRevisionStatus holds the status fields common to all kinds of
// revision.
type PackageRevisionStatus struct {
	ConditionedStatus `json:",inline"`

	// ObservedGeneration is the metadata.generation that this status refers
	// to. While it is lower than the current one, the package manager has not yet
	// reconciled the last change of the spec.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// LastHandledRetry is the value of the annotation xpkg.dev/retry that this status
	// refers to.
	// +optional
	LastHandledRetry string `json:"lastHandledRetry,omitempty"`

	// ObjectRefs are the objects that the revision owns.
	// +optional
	ObjectRefs []TypedReference `json:"objectRefs,omitempty"`

	// FoundDependencies is the number of dependencies, direct and indirect.
	// +optional
	FoundDependencies int64 `json:"foundDependencies,omitempty"`
	// InstalledDependencies is the number of them that are installed.
	// +optional
	InstalledDependencies int64 `json:"installedDependencies,omitempty"`
	// InvalidDependencies is the number of them that are installed at a version that the package does not
	// accept.
	// +optional
	InvalidDependencies int64 `json:"invalidDependencies,omitempty"`
	// AbsentOptionalDependencies are optional dependencies that are not installed, each with the accepted
	// versions. The revision does not require them.
	// +optional
	AbsentOptionalDependencies []string `json:"absentOptionalDependencies,omitempty"`

	// AppliedImageConfigRefs are the image configs that were used for this
	// revision, with the reason for each.
	// +optional
	AppliedImageConfigRefs []ImageConfigRef `json:"appliedImageConfigRefs,omitempty"`

	// ResolvedImage is the reference that was requested from a registry. It differs
	// from spec.image where an image config rewrote it.
	// +optional
	ResolvedImage string `json:"resolvedImage,omitempty"`

	// Capabilities of the package: keywords for its consumers,
	// such as composition or safe-start.
	// +optional
	Capabilities []string `json:"capabilities,omitempty"`

	// Kinds are the numbers of managed resources of a Provider that are active and that the package offers.
	// +optional
	Kinds *KindCounts `json:"kinds,omitempty"`

	// PermissionRequests are permissions that the package requests for its runtime, beyond the permissions
	// for its own resources.
	// +optional
	PermissionRequests []rbacv1.PolicyRule `json:"permissionRequests,omitempty"`

	// UnapprovedPermissions are permissions that wait for approval: permissions that the previous revision
	// did not have, or permissions that amount to control of the cluster.
	// +optional
	UnapprovedPermissions []rbacv1.PolicyRule `json:"unapprovedPermissions,omitempty"`

	// UnallowedWebhooks are the rules of the revision's webhooks for resources that the package does not
	// define, while the revision waits until a user allows them.
	// +optional
	UnallowedWebhooks []string `json:"unallowedWebhooks,omitempty"`

	// ObjectsToAdopt lists objects of the package that users created, as Kind/name, while the revision waits
	// until a user lets the package adopt them.
	// +optional
	ObjectsToAdopt []string `json:"objectsToAdopt,omitempty"`
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
	// Generation is the metadata.generation of the object after the package manager last wrote it. If the
	// object has another generation, another client has changed it.
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// KindCounts are numbers of the managed resources of a Provider.
type KindCounts struct {
	// Active ones, whose CRDs exist.
	Active int64 `json:"active"`
	// Offered ones, which the package contains.
	Offered int64 `json:"offered"`
}
