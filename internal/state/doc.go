// Package state reads the packages of a control plane: the resolved reference of a package, the
// content of its revisions, their dependencies, and the graph of all packages.
//
// The manager and the planner of commands use the same functions. They differ only in the source
// that they read: the manager from its cache, where a decision allows for that, and the planner
// from the API server.
package state
