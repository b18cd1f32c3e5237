// Package state reads the packages of a control plane: the resolved reference of a package, its
// revisions, their content, and their dependencies.
//
// The manager and the planner of commands use the same functions. The manager reads from its cache
// where a decision allows that, and the planner reads from the API server.
package state
