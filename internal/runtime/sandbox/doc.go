// Package sandbox runs package runtimes as child processes, without a container engine.
//
// A [Supervisor] keeps one process for each name: it starts the process from the unpacked
// root of its image, restarts it with backoff when it exits, and ends it together with
// its descendants. A runtime never outlives its supervisor, even if the supervisor is
// killed.
//
// # Isolation
//
// On Linux a runtime has its own user, mount, process, IPC and UTS namespaces. The root
// of its image is its root file system: the unpacked files are shared and read-only, and
// its writes are private and discarded at the next start. It runs as an unprivileged user
// without capabilities, cannot gain privileges, and may not make the system calls that
// change namespaces. It shares the network of the machine.
//
// If the machine forbids namespaces, the runtime runs with less isolation, down to an
// ordinary child process. [Status] reports the isolation and the reason.
//
// # Data directory
//
//	images/      unpacked roots, each under the digest of its image
//	programs/    writable layers of running processes, and the files they are given
//	logs/        NAME.log, and the rotated NAME.log.1
//
// # Init process
//
// A runtime is started through the executable of this process, which prepares the sandbox
// and then executes the runtime. The main function of that executable must call [Init]
// when it is run with [InitCommand] as its argument.
package sandbox
