// Package solve finds one version for every package that a set of roots needs,
// directly and indirectly, so that every constraint of every parent holds at
// once, or explains in a few sentences why there is none.
//
// The search is conflict-driven, as PubGrub describes it (Weizenbaum, 2018): a
// fact that forbids a combination of versions is an incompatibility, whatever
// follows from facts is propagated, and a dead end is resolved to a new
// incompatibility that excludes its cause and remembers from what it follows.
// Where there is no solution, that memory is the explanation.
//
// A package is a variable over a finite list: its versions, and its absence. Sets
// of versions are sets of bits over that list, which is exact for the constraint
// language of Masterminds/semver, whose constraints are not intervals.
//
// The package computes: values in, values out. What it knows about packages comes
// through a Source, which it asks at most once for each list and each version.
package solve
