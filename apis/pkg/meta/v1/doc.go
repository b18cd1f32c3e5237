// Package v1 holds version v1 of the API group meta.pkg.crossplane.io: the metadata with
// which an author describes a package. Each package contains exactly one such document.
// It is never an object in a cluster, so it has no CustomResourceDefinition.
//
// It also has the fields of earlier formats that are still effective: the separate
// image of a controller, and the permissions
// that it requests.
//
// +kubebuilder:object:generate=true
// +groupName=meta.pkg.crossplane.io
// +versionName=v1
package v1
