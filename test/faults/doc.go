// Package faults proves that a package manager survives a fault at any call that it makes to the API
// server or to a registry: the end of its process, and a failed, lost or stale response.
//
// A scenario is an operation on a package, such as an upgrade, with its initial state and its
// outcomes. After each fault the state must be the initial state or an outcome, complete, and soon be
// an outcome: without help if only a call failed, and after a restart if the process ended.
//
// Each call of a scenario gets one fault of each group, such as the failures of the API server. In
// the full lane, each call gets all faults, which takes about four times as long.
package faults
