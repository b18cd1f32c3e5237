// Package controller is the package manager that runs against a cluster: the
// controllers of packages, of their revisions, and of the Lock.
//
// Every controller is the same four steps: read what is there, decide with a
// pure function (internal/revision, pkg/plan), act, and report in
// conditions. A controller keeps no state of its own that matters: whatever
// moment it is stopped at, the next start reads the cluster and continues.
package controller
