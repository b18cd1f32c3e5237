// Package processruntime runs package runtimes as processes of this machine, as if they were
// pods: with the environment, the arguments, the certificates and the identity of the
// Deployment that the runtime would have.
//
// The process is derived from that Deployment (package manifests), so that a configuration has the
// same meaning for both. Configurations that need features of nodes are refused. Settings that only
// concern nodes are ignored.
//
// A runtime authenticates with a token of its ServiceAccount, which is renewed before it expires,
// so that it has the permissions that its pod would have. It finds the API server as in a pod, by
// the files and variables of its ServiceAccount, and by KUBECONFIG.
//
// Runtimes share the network of the machine. Ports that would collide are moved if the runtime
// allows configuring them.
package processruntime
