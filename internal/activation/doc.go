// Package activation decides which kinds of a Provider are active.
//
// A Provider with the capability safe-start works while only some of its kinds exist. A kind of such a Provider is
// active if something needs it: the package, a policy, a Composition, or custom resources that may exist. Kinds that
// are no managed resources configure the runtime and are always active. All kinds of other Providers are active.
//
// [UsesOf] finds the kinds that a Composition uses, and [Needs.Select] decides. Both are pure.
package activation
