// Package relocation moves the TCP ports of package runtimes. Runtimes share the network of the machine. Programs that
// are made for a pod listen on the same ports, and many have no setting for them: without relocation, only one of them
// could run at once. The filter of a runtime leaves each bind call that may name a port to the supervisor
// (seccomp_unotify(2)), which binds the socket to the port that the runtime has been assigned instead.
package relocation
