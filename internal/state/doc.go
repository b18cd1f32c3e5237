// Package state reads the packages of a control plane: what a package resolves to, the content of
// its revisions, what they depend on, and the graph of all of them.
//
// The manager and the planner of commands use the same functions. They differ only in what they
// read from: the manager from its cache, where a decision allows for that, and the planner from
// the API server.
package state
