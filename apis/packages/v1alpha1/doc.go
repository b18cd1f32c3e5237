// Package v1alpha1 holds version v1alpha1 of the API group packages.crossplane.io: the install objects and the records
// of the first generation of packages. All kinds are namespaced.
//
// The schemas accept every object that the schemas of Crossplane v0.12 accept.
//
// +kubebuilder:object:generate=true
// +groupName=packages.crossplane.io
// +versionName=v1alpha1
package v1alpha1
