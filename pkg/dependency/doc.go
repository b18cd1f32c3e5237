// Package dependency defines the one form in which packages depend on each other: a
// [Dependency] of a package on another one under a constraint, the [Root] requirement of a
// user, and the [Graph] of packages.
//
//	package.yaml ──┐                          ┌──▶ pkg/solver, pkg/resolver
//	Lock object ───┼──▶ Dependency ──▶ Graph ─┼──▶ pkg/lockfile
//	lock file ─────┘                          └──▶ plans, controllers, commands
//
// It imports no other form. Files and objects are converted where they are read and written.
package dependency
