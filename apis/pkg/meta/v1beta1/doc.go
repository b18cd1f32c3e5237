// Package v1beta1 holds version v1beta1 of the API group meta.pkg.crossplane.io:
// the metadata of function packages, with the same fields as in version v1.
//
// +kubebuilder:object:generate=true
// +groupName=meta.pkg.crossplane.io
// +versionName=v1beta1
package v1beta1
