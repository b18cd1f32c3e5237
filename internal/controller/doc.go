// Package controller is the package manager that runs against a cluster: its options, the wiring of its
// controllers, leader election, metrics and health endpoints.
//
// The controllers are in subpackages: packages, revisions, lock, orphans, packageapi, rootca and
// fences. Each of them reads the current state, decides with a pure function
// (internal/revision, internal/graph, pkg/plan), acts, and reports in conditions or events. The
// state that a controller keeps in memory can be lost: after a stop at any moment, the next start
// continues from the state of the cluster.
package controller
