// Package restore_test loses a cluster and brings it back from a backup, in the ways
// in which that is done in the field, and checks that nothing is lost by it
// (packages v2 design, "A Note on Backup and Restore").
//
// Two kinds of restore differ in what they write of the owners of an object:
//
//   - Velero writes none. It restores definitions first, and other kinds in the order
//     of their names, so that revisions come before their packages; status and UIDs
//     are left out.
//   - Whoever applies what `kubectl get -o yaml` gave writes the owners with the UIDs
//     that they had. To the garbage collector of Kubernetes such owners are gone, and
//     it deletes what has no other: that is only survived where it does not run until
//     the package manager has taken everything over. A test holds it back with an
//     admission policy.
//
// What no package manager can know is what a tag stood for when its package comes back
// before any revision of it, without a status, to a manager that is at work: it asks
// the registry. So restores to a manager at work are made in Velero's order.
package restore_test
