// Package restore_test deletes all packages of a cluster, restores them from a backup in the ways
// of the field, and checks that nothing is lost (packages v2 design, "A Note on Backup and
// Restore").
//
// Two kinds of restore differ in the owner references that they write:
//
//   - Velero writes none. It restores CRDs first and other kinds in alphabetical order, so
//     revisions precede their packages. It omits status and UIDs.
//   - A restore that applies the output of `kubectl get -o yaml` writes owner references with the
//     former UIDs. For the garbage collector these owners do not exist, and it deletes their
//     dependents. Objects survive only if the garbage collector does not run before the package
//     manager has adopted them. The tests block it with an admission policy.
//
// A package manager cannot know the former digest of a tag if the package is restored before its
// revisions, without a status, while the manager runs: it resolves the tag again. Restores to a
// running manager therefore use Velero's order.
package restore_test
