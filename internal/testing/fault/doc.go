// Package fault lets tests decide what happens to the calls of a program: at any
// one of them its process dies, the answer is an error, is lost, is old or is
// wrong.
//
// A Network stands between the program and the API server, and between the
// program and a registry. It attributes each call to a subject, keeps a list of
// the calls of each subject, and strikes the subject at the call that a test
// chose. With one subject for the whole program, a kill is the end of the
// program: nothing that it sends arrives any more. With a subject for each
// package, many packages can be struck at once, each at another call: as far as
// the API server can tell of a package, the process that works on it is dead.
//
// The three patterns of Sieve (Sun and others, "Automatic Reliability Testing For
// Cluster Management Controllers", OSDI 2022) are here: intermediate state is
// KilledBefore and KilledAfter, unobserved state is Meanwhile, and stale state is
// Stale.
package fault
