package cloudidentity

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// ErrCloudIdentity is the code for an identity of a cloud that cannot be used for one of its registries.
var ErrCloudIdentity = errcode.Code{
	Name: "CloudIdentity", Class: errcode.Unauthorized,
	Cause: "A registry of a cloud denies anonymous access, no credentials are configured for it, " +
		"and the process has no identity of this cloud, or the cloud rejects it.",
	Fix: "Give the ServiceAccount of the manager an identity with read access to the registry, " +
		"or configure a pull secret.",
}

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code { return []errcode.Code{ErrCloudIdentity} }
