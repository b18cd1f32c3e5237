// Package v1alpha1 holds version v1alpha1 of the API group pkg.crossplane.io:
// the ControllerConfig, the first way to configure a package runtime.
// Packages guide, spec.controllerConfigRef.
//
// +kubebuilder:object:generate=true
// +groupName=pkg.crossplane.io
// +versionName=v1alpha1
package v1alpha1
