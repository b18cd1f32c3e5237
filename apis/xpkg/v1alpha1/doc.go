// Package v1alpha1 holds version v1alpha1 of the API group xpkg.dev: the changes of packages that the package manager
// carries out as a whole.
//
// +kubebuilder:object:generate=true
// +groupName=xpkg.dev
// +versionName=v1alpha1
package v1alpha1
