// Package up runs a complete control plane on this machine: etcd and the API server in a child
// process, and an OCI registry and the package manager in this process. All of them listen on the
// loopback interface only, and all persistent data is in one data directory.
//
//	DIR/version.json       the layout of the directory
//	DIR/up.lock, up.pid, up.owner   the process that holds it
//	DIR/controlplane.lock  the child process
//	DIR/serve.lock, registry/.serve.lock   the registry
//	DIR/state.json         the addresses, while it runs
//	DIR/*.port             the ports of the last start
//	DIR/kubeconfig         for clients of the API server
//	DIR/pki, DIR/etcd      keys and the database, of the child process
//	DIR/registry           the images
//	DIR/registry.token     the secret for pushes to the registry
//	DIR/cache              content that can be fetched again
//	DIR/logs               the logs
//
// The parts start in the order control plane, registry, manager, and stop in the reverse order. If
// this process is killed, the child stops by itself, and the next start waits for that.
package up
