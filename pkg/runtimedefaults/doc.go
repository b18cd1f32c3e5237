// Package runtimedefaults is the default configuration of the runtime of a package, which the package carries in an
// annotation of its metadata. The configuration of the administrator takes precedence over it.
//
// A package is not trusted, so its defaults can only set fields that affect its own container: arguments, variables,
// ports, resources and probes. They cannot name volumes, ServiceAccounts, security contexts, or objects of the cluster,
// and they cannot label pods in a way that Services of other programs select.
package runtimedefaults
