package sandbox

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Reasons why a runtime is not running.
var (
	ErrNoProgram = errcode.Code{
		Name: "NoProgram", Class: errcode.Invalid,
		Cause: "The package contains no runnable image: its image names no program to start, or one that is not among its files. An update to such a package is rolled back at once.",
		Fix:   "Rebuild the package with --embed-runtime-image or --embed-runtime-image-tarball, or name the image in spec.controller.image of its metadata. To install only its CRDs, run the manager with --package-runtime KIND/NAME=None.",
	}
	ErrProgramStart = errcode.Code{
		Name: "ProgramStart", Class: errcode.Unavailable,
		Cause: "The process of a program could not be started on this machine.",
		Fix:   "Read the reason; the start is tried again with increasing pauses.",
	}
	ErrProgramSpec = errcode.Code{
		Name: "ProgramSpec", Class: errcode.Invalid,
		Cause: "A program was described with a name, a file or a variable that it cannot have.",
		Fix:   "Correct what the message names in the runtime configuration of the package.",
	}
	ErrProgramsUnsupported = errcode.Code{
		Name: "ProgramsUnsupported", Class: errcode.Unsupported,
		Cause: "Programs of packages run as processes on Linux only.",
		Fix:   "Use the runtime External on this machine, or run the control plane on Linux.",
	}
	ErrProgramsInUse = errcode.Code{
		Name: "ProgramsInUse", Class: errcode.Conflict,
		Cause: "Another process runs the programs of this folder.",
		Fix:   "Stop the other process, or use another data directory.",
	}
	ErrProgramFolder = errcode.Code{
		Name: "ProgramFolder", Class: errcode.Unavailable,
		Cause: "The folder of running programs cannot be written.",
		Fix:   "Free some space, and check who may write to the data directory.",
	}
	ErrNoProgramLog = errcode.Code{
		Name: "NoProgramLog", Class: errcode.NotFound,
		Cause: "No program of that name has run here.",
		Fix:   "Check the name; a program has a log as soon as it was started for the first time.",
	}
)
