// Package faults proves what a package manager must survive: its process ends, or
// an answer fails, is lost or is old, at any one call that it makes to the API
// server or to a registry.
//
// A scenario is what a person does with a package, such as an upgrade, with the
// state before and the state after. Each call of a scenario is struck once by each
// kind of fault. After each fault the state must be the state before or the state
// after, whole, and soon be the state after: without help where only a call
// failed, and after a restart where the process ended.
package faults
