// Package v1 holds version v1 of the API group pkg.crossplane.io: packages (Provider,
// Configuration, Function) and their revisions.
//
// The types are compatible on the wire with the clients and manifests of Crossplane.
// Package is the interface common to the three kinds of package, and PackageRevision the
// interface common to the three kinds of revision, so that one reconciler serves all of
// them.
//
// A package is a request: a reference, and the policies for following it. A revision is
// the content of one digest, with the settings that the package had when the revision was
// created.
//
// +kubebuilder:object:generate=true
// +groupName=pkg.crossplane.io
// +versionName=v1
package v1
