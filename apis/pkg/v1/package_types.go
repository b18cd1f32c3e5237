package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RevisionActivationPolicy controls how a new revision is activated.
type RevisionActivationPolicy string

// Revision activation policies.
const (
	// AutomaticActivation activates each new revision as soon as it exists.
	AutomaticActivation RevisionActivationPolicy = "Automatic"
	// ManualActivation keeps the active revision until a user marks
	// another one as Active.
	ManualActivation RevisionActivationPolicy = "Manual"
)

// PackageSpec holds the spec fields common to all kinds of package.
//
// A reference must contain its registry, because a name without one has a different
// meaning on each machine. A package that is never pulled may have any name: it is looked
// up in the package cache. (In the rule, __package__ is the field package, whose name is
// a reserved word of the Common Expression Language.)
//
// +kubebuilder:validation:XValidation:message="must be a fully qualified image reference: a registry (with a dot in its name, or localhost) and a repository, followed by a tag, a digest or both, for example registry.example.com/repo/package:tag or registry.example.com/repo/package@sha256:<64 hexadecimal digits>; any other name needs packagePullPolicy: Never",rule="has(self.packagePullPolicy) && self.packagePullPolicy == 'Never' ? self.__package__.size() > 0 : self.__package__.matches('^(localhost|[A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)+)(:[0-9]+)?(/[a-z0-9._-]+)+(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[a-f0-9]{64})?|@sha256:[a-f0-9]{64})$')",fieldPath=".package"
type PackageSpec struct {
	// Package is the reference of the package: a fully
	// qualified image name with registry, repository and a tag, a digest or
	// both, for example "registry.example.com/repo/package:tag". With the
	// packagePullPolicy Never it may also be the name of a package in the cache.
	// +kubebuilder:validation:MaxLength=1024
	Package string `json:"package"`

	// RevisionActivationPolicy controls how a new revision is activated: Automatic
	// activates it at once, Manual waits until a user activates it. Default is Automatic.
	// +optional
	// +kubebuilder:default=Automatic
	// +kubebuilder:validation:Enum=Automatic;Manual
	RevisionActivationPolicy RevisionActivationPolicy `json:"revisionActivationPolicy,omitempty"`

	// RevisionHistoryLimit is the number of old inactive revisions that are
	// kept. Default is 1; 0 keeps all of them.
	// +optional
	// +kubebuilder:default=1
	RevisionHistoryLimit *int64 `json:"revisionHistoryLimit,omitempty"`

	// PackagePullSecrets are names of secrets, in the namespace of the package
	// manager, with credentials for the registry. They are passed to the runtime
	// of the package, and not to its dependencies.
	// +optional
	PackagePullSecrets []corev1.LocalObjectReference `json:"packagePullSecrets,omitempty"`

	// PackagePullPolicy controls when content is downloaded. IfNotPresent downloads it
	// once. Always checks every minute whether the tag has moved. Never uses only the
	// package cache. Default is IfNotPresent.
	// +optional
	// +kubebuilder:default=IfNotPresent
	PackagePullPolicy corev1.PullPolicy `json:"packagePullPolicy,omitempty"`

	// IgnoreCrossplaneConstraints installs the package without checking whether it
	// supports the installed version of Crossplane. Default is false.
	// +optional
	// +kubebuilder:default=false
	IgnoreCrossplaneConstraints bool `json:"ignoreCrossplaneConstraints,omitempty"`

	// SkipDependencyResolution installs the package without its dependencies, and does
	// not check them. Default is false.
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

// PackageStatus holds the status fields common to all kinds of package.
type PackageStatus struct {
	ConditionedStatus `json:",inline"`

	// ObservedGeneration is the metadata.generation that this status refers
	// to. While it is lower than the current one, the package manager has not yet
	// reconciled the last change of the spec.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// CurrentRevision is the name of the newest revision, active or not.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// CurrentIdentifier is the value of spec.package that the current revision was
	// created from. Removing it makes the package manager resolve the reference again,
	// regardless of the packagePullPolicy.
	// +optional
	CurrentIdentifier string `json:"currentIdentifier,omitempty"`

	// AppliedImageConfigRefs are the image configs that were used for this
	// package, with the reason for each.
	// +optional
	AppliedImageConfigRefs []ImageConfigRef `json:"appliedImageConfigRefs,omitempty"`

	// ResolvedPackage is the reference that was requested from a registry. It differs
	// from spec.package where an image config rewrote it.
	// +optional
	ResolvedPackage string `json:"resolvedPackage,omitempty"`

	// ResolvedDigest is the digest that the reference was resolved to, once, for
	// the current revision, for example "sha256:1234…". All later steps use it
	// instead of the reference.
	// +optional
	ResolvedDigest string `json:"resolvedDigest,omitempty"`

	// Activation is the last activation of a revision, and whether it has led to
	// a healthy package.
	// +optional
	Activation *Activation `json:"activation,omitempty"`

	// LastHealthyRevision is the last revision that was healthy and stayed so for the
	// settle time of its runtime. A rollback activates it when another revision does
	// not become healthy.
	// +optional
	LastHealthyRevision string `json:"lastHealthyRevision,omitempty"`

	// Rollback records that a revision did not become healthy in time, and that the last
	// healthy revision was activated again. It is removed when the revision is tried again:
	// when the spec, the content or the annotation xpkg.dev/retry changes, or at its
	// retryTime.
	// +optional
	Rollback *Rollback `json:"rollback,omitempty"`

	// CustomResources is the number of custom resources that the deletion of this package would delete, as of the last
	// count. It is absent if they have not been counted.
	// +optional
	CustomResources *int64 `json:"customResources,omitempty"`

	// LastHandledRetry is the last value of the annotation xpkg.dev/retry that the package
	// manager has seen.
	// +optional
	LastHandledRetry string `json:"lastHandledRetry,omitempty"`
}

// Activation records the activation of a revision.
type Activation struct {
	// Revision is the name of the activated revision.
	Revision string `json:"revision"`
	// Number of the revision.
	Number int64 `json:"number"`
	// Since is the time of the activation.
	Since metav1.Time `json:"since"`
	// Healthy is set when the revision is healthy and its runtime has run for its
	// settle time without a restart. A runtime that crashes later is still rolled back
	// until the activation deadline has passed.
	// +optional
	Healthy bool `json:"healthy,omitempty"`
	// Previous is the last healthy revision before this activation. A rollback activates
	// it again.
	// +optional
	Previous string `json:"previous,omitempty"`
	// Retry is the revision that the package manager tries again by itself after a
	// rollback. If the cluster still refuses it, the package is rolled back at once.
	// +optional
	Retry string `json:"retry,omitempty"`
}

// Rollback records the rollback from one revision to an earlier one.
type Rollback struct {
	// From is the revision that did not become healthy.
	From string `json:"from"`
	// To is the revision that was activated again.
	To string `json:"to"`
	// Generation of the package to which the rollback applies.
	Generation int64 `json:"generation"`
	// Time of the decision.
	Time metav1.Time `json:"time"`
	// Message is the last condition message of the revision.
	// +optional
	Message string `json:"message,omitempty"`
	// RetryTime is the time at which the package manager tries the revision again. It is
	// set if the cluster refused the revision before anything was written.
	// +optional
	RetryTime *metav1.Time `json:"retryTime,omitempty"`
}

// ImageConfigRefReason is the purpose that an image config was used for.
type ImageConfigRefReason string

// Reasons for using an image config.
const (
	ImageConfigReasonPullSecret ImageConfigRefReason = "SetImagePullSecret"
	ImageConfigReasonVerify     ImageConfigRefReason = "VerifyImage"
	ImageConfigReasonRewrite    ImageConfigRefReason = "RewriteImage"
	ImageConfigReasonRuntime    ImageConfigRefReason = "ConfigureRuntime"

	// ImageConfigReasonRegistry (CA bundles and plain HTTP) and ImageConfigReasonMirrors
	// are extensions of xpkg.
	ImageConfigReasonRegistry ImageConfigRefReason = "ConfigureRegistry"
	ImageConfigReasonMirror   ImageConfigRefReason = "UseMirror"
)

// ImageConfigRef names an image config and its purpose.
type ImageConfigRef struct {
	// Name of the image config.
	Name string `json:"name"`
	// Reason is the purpose that the image config was used for.
	Reason ImageConfigRefReason `json:"reason"`
}
