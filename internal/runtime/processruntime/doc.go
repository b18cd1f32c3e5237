// Package processruntime runs package runtimes as processes of this machine, as if they were
// pods: with the environment, the arguments, the certificates and the identity of the
// Deployment that the runtime would have.
//
// Everything follows from that Deployment (package manifests), so that a configuration has
// the same meaning for both. Features of nodes are refused; settings that concern only
// nodes are ignored.
//
// A runtime uses its own ServiceAccount: its token is bound to the ServiceAccount and
// renewed before it expires, so that the permissions of the runtime are the permissions of a
// pod. It finds the API server as in a pod, by the files and variables of its
// ServiceAccount, and by KUBECONFIG.
//
// Runtimes share the network of the machine. Ports that would collide are moved, as far as
// a runtime can be configured.
package processruntime
