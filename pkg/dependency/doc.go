// Package dependency defines the dependencies between packages: a [Dependency] of a package
// on another one under a constraint, the [Root] requirement of a user, and the [Graph] of
// packages.
//
//	package.yaml ──┐                          ┌──▶ pkg/solver, pkg/resolver
//	Lock object ───┼──▶ Dependency ──▶ Graph ─┼──▶ pkg/lockfile
//	lock file ─────┘                          └──▶ plans, controllers, commands
//
// All other packages use these types. Files and objects are converted when they are read and
// written.
package dependency
