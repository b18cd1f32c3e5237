// Package v1 holds version v1 of the API group pkg.crossplane.io: the packages
// that a user asks for (Provider, Configuration, Function) and their revisions.
//
// On the wire the types are those that every client and manifest of the field
// already uses; in Go they are our own. What the three kinds of package have in
// common is behind the interface Package, and what the three kinds of revision
// have in common is behind PackageRevision, so that one reconciler serves all
// of them.
//
// A package is a wish: a reference, and the rules for following it. A revision
// is one answer to that wish: the content of one digest, with the settings that
// the package had when the revision was made.
//
// +kubebuilder:object:generate=true
// +groupName=pkg.crossplane.io
// +versionName=v1
package v1
