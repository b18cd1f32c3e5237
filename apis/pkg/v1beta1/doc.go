// Package v1beta1 holds version v1beta1 of the API group pkg.crossplane.io: the
// Lock, the configuration of images and of runtimes, and the kinds Function and
// FunctionRevision, which version v1 stores and this version still serves.
//
// +kubebuilder:object:generate=true
// +groupName=pkg.crossplane.io
// +versionName=v1beta1
package v1beta1
