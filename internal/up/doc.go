// Package up runs a whole control plane on this machine: etcd and the API server in
// a child process, an OCI registry and the package manager in this one, all on the
// loopback interface, with all persistent data in one data directory.
//
//	DIR/version.json       the layout of the directory
//	DIR/up.lock, up.pid    the process that runs it
//	DIR/state.json         where things are, while it runs
//	DIR/kubeconfig         for clients of the API server
//	DIR/pki, DIR/etcd      keys and the database, of the child process
//	DIR/registry           the images
//	DIR/registry.token     the secret that pushes to the registry need
//	DIR/cache              content that can be fetched again
//	DIR/logs               the logs
//
// Parts start in the order control plane, registry, manager, and stop in the
// reverse order. When this process is killed the child stops by itself, and the
// next start waits for that.
package up
