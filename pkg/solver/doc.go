// Package solver selects one version for every package that a set of roots requires,
// directly and indirectly, or explains why there is no solution. It implements the PubGrub
// algorithm (Weizenbaum, 2018) for the constraint language of Masterminds/semver.
//
// # Terms
//
// A package is a variable over a finite list of states: its absence and its candidate
// versions. A term is a set of states of one package. An incompatibility is a set of terms
// that must not all be satisfied at once; "a v1 requires b v2" is the incompatibility
// {a v1, b not v2}. The problem itself is a package whose dependencies are the roots.
//
// # Search
//
// The partial solution is a list of assignments, each of which restricts the state of one
// package. An assignment is either a decision, which selects a version, or follows by unit
// propagation: if all terms of an incompatibility but one are satisfied, the states of the
// last one are excluded. If all terms are satisfied there is a conflict. Conflict resolution
// combines the incompatibility with the causes of the assignments that satisfy it until the
// result excludes a state at an earlier decision level; the search jumps back to that level
// and keeps the new incompatibility, so that it does not make the same choice again. Each
// derived incompatibility refers to the two that it follows from. If the incompatibility
// without terms is derived, the problem has no solution, and this derivation graph is the
// proof.
//
// Sets of states are bit sets over the candidates. They are exact for constraints such as
// "!=v1.2" that are not intervals, and make unit propagation a few machine words per term.
//
// A solution whose dependencies form a cycle is rejected by an incompatibility of all known
// versions that close the cycle, so that a cycle is an error only if no versions avoid it.
//
// # Preferences
//
// An installed version is kept if it satisfies all constraints. Otherwise the highest
// version is selected, or the nearest one (Problem.Nearest). Prereleases are selected only
// if a constraint allows them. The same problem always has the same solution.
//
// # Explanations
//
// If there is no solution, Solve reduces the roots to a minimal conflicting set, lists the
// requirements of its proof, and searches for the smallest changes that make the problem
// solvable. All of these searches share one store of facts, so that the Source is asked at
// most once for each list and each version.
//
// The package has no side effects: packages are known through a Source.
package solver
