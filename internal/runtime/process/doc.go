// Package process runs the programs of packages as child processes of this one,
// without a container engine.
//
// A [Supervisor] keeps one program for each name: it starts it from the unpacked
// root of its image, starts it again with backoff whenever it ends, and ends it
// with everything that it started. A program never outlives its supervisor, also
// when that is killed.
//
// # Isolation
//
// On Linux a program has user, mount, process, IPC and host name namespaces of its
// own. The root of its image is its root: the unpacked files are shared and
// read-only, what it writes is private and gone with the next start. It runs as an
// unprivileged user, without capabilities, cannot gain privileges, and is barred
// from the calls that change namespaces. Its network is that of the machine.
//
// Where the machine forbids namespaces the program runs with less, down to an
// ordinary child process; [Status] says so and why.
//
// # In a folder
//
//	images/      unpacked roots, each under the digest of its image
//	programs/    what a running program writes, and the files it is given
//	logs/        NAME.log, and NAME.log.1 before it
//
// # The step in between
//
// A program is started through the executable of this process, which prepares the
// place and then becomes the program. The main function of that executable calls
// [Init] when it is run with [InitCommand] as its argument.
package process
