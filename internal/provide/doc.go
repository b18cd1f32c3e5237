// Package provide selects the package that provides a required kind of custom resources.
//
//	Source ──▶ Candidate ──▶ Rank ──▶ Ranking ──▶ Choose ──▶ Choice, or AmbiguousKind, or NoProvider
//	indexes, cache           merge names of one package
//	                         drop what cannot be installed
//	                         order
//
// Kinds that are required together are ranked together, so that their packages can be installed beside each other; see
// [Together].
//
// All functions are pure, and their results do not depend on the order of sources and candidates. A package is selected
// without a decision of the user only if there is no doubt; see [Rank].
package provide
