// Package fault injects faults into the calls of a program: at any call, the process is killed, or
// the response is an error, lost, stale or corrupt.
//
// A [Network] is the transport between the program and the API server, and between the program and
// a registry. It attributes each call to a subject, records the calls of each subject, and injects
// a fault into the call that a test selects. If the whole program is one subject, a kill ends the
// program: none of its later calls arrive. If each package is a subject, a test can inject faults
// for many packages at once, each at another call. After a kill, the API server then sees no more
// calls for that package, as if the process had died.
//
// The faults include the three patterns of Sieve (Sun and others, "Automatic Reliability
// Testing For Cluster Management Controllers", OSDI 2022): intermediate state is KilledBefore
// and KilledAfter, unobserved state is Meanwhile, and stale state is Stale.
package fault
