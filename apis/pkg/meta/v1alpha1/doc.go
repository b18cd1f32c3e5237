// Package v1alpha1 holds version v1alpha1 of the API group meta.pkg.crossplane.io: the
// first metadata of provider and configuration packages. Its oldest form is also
// accepted: a version of Crossplane as a plain string, and permission requests directly
// in the spec of a Provider (package format, "The Packaged Format").
//
// +kubebuilder:object:generate=true
// +groupName=meta.pkg.crossplane.io
// +versionName=v1alpha1
package v1alpha1
