// Package fault injects faults into the calls of a program: at any call its process dies, or
// the response is an error, lost, stale or corrupt.
//
// A [Network] is the transport between the program and the API server, and between the
// program and a registry. It attributes each call to a subject, records the calls of each
// subject, and injects a fault into the call that a test selects. If the whole program is one
// subject, a kill ends the program: none of its later calls arrive. If each package is a
// subject, a test injects faults for many packages at once, each at another call: for the API
// server, the process that works on that package is dead.
//
// The faults include the three patterns of Sieve (Sun and others, "Automatic Reliability
// Testing For Cluster Management Controllers", OSDI 2022): intermediate state is KilledBefore
// and KilledAfter, unobserved state is Meanwhile, and stale state is Stale.
package fault
