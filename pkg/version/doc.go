// Package version implements the versions of packages and the constraints on them.
//
// A version is a tag such as v1.2.3, with or without the prefix v. Other tags, such as latest
// or v1, are not versions: they move with every release and can only be selected by name. A
// [Pin] names one version by its tag, by its digest, or by both.
//
// A [Constraint] is written in the language of Masterminds/semver, which Crossplane uses:
// alternatives separated by "||", each of them comparisons such as ">=v1.2" separated by
// commas or spaces. A prerelease is accepted only by a constraint that names one. The package
// evaluates most constraints itself, because the library creates an error for every version
// that does not match; property tests compare both.
package version
