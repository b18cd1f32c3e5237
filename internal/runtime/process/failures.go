package process

import "github.com/xpkg-dev/xpkg/internal/failure"

// The ways in which a program does not run.
var (
	ErrNoProgram = failure.Register(failure.Code{
		Name: "NoProgram", Class: failure.Invalid,
		Cause: "The image of a package names no program to start, or one that is not among its files.",
		Fix:   "Build the package with the image of its program, or name the image in spec.controller.image of its metadata. To install it without its program, run the manager with --package-runtime KIND/NAME=None.",
	})
	ErrProgramStart = failure.Register(failure.Code{
		Name: "ProgramStart", Class: failure.Unavailable,
		Cause: "The process of a program could not be started on this machine.",
		Fix:   "Read the reason; the start is tried again with increasing pauses.",
	})
	ErrProgramSpec = failure.Register(failure.Code{
		Name: "ProgramSpec", Class: failure.Invalid,
		Cause: "A program was described with a name, a file or a variable that it cannot have.",
		Fix:   "Correct what the message names in the runtime configuration of the package.",
	})
	ErrProgramsUnsupported = failure.Register(failure.Code{
		Name: "ProgramsUnsupported", Class: failure.Unsupported,
		Cause: "Programs of packages run as processes on Linux only.",
		Fix:   "Use the runtime External on this machine, or run the control plane on Linux.",
	})
	ErrProgramsInUse = failure.Register(failure.Code{
		Name: "ProgramsInUse", Class: failure.Conflict,
		Cause: "Another process runs the programs of this folder.",
		Fix:   "Stop the other process, or use another data directory.",
	})
	ErrProgramFolder = failure.Register(failure.Code{
		Name: "ProgramFolder", Class: failure.Unavailable,
		Cause: "The folder of running programs cannot be written.",
		Fix:   "Free some space, and check who may write to the data directory.",
	})
	ErrNoProgramLog = failure.Register(failure.Code{
		Name: "NoProgramLog", Class: failure.NotFound,
		Cause: "No program of that name has run here.",
		Fix:   "Check the name; a program has a log as soon as it was started for the first time.",
	})
)
