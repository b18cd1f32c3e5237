// Package processruntime runs the programs of packages as processes of this machine, as if they
// were pods: with the environment, the arguments, the certificates and the identity
// that the Deployment of the program would give them.
//
// What a program is given is derived from that Deployment (package shape), so that the
// same configuration means the same. What only a node could do is refused; what only
// concerns nodes is ignored.
//
// A program runs as its own ServiceAccount: its token is bound to that and renewed
// before it expires, so that the rights of the program are those of a pod. It finds the
// API server as in a pod, by the files and variables of its ServiceAccount, and by
// KUBECONFIG.
//
// The network is that of the machine, so that ports that would collide are moved, as
// far as programs can be told.
package processruntime
