// Package v1alpha1 holds version v1alpha1 of the API group pkg.crossplane.io: the
// ControllerConfig, which is deprecated in favor of the DeploymentRuntimeConfig. See the
// packages guide, "spec.controllerConfigRef".
//
// +kubebuilder:object:generate=true
// +groupName=pkg.crossplane.io
// +versionName=v1alpha1
package v1alpha1
