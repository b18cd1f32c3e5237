package sandbox

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Reasons why a runtime is not running.
var (
	ErrProgramStart = errcode.Code{
		Name: "ProgramStart", Class: errcode.Unavailable,
		Cause: "The process of a runtime could not be started on this machine.",
		Fix:   "Read the reason; the start is tried again with increasing pauses.",
	}
	ErrProgramSpec = errcode.Code{
		Name: "ProgramSpec", Class: errcode.Invalid,
		Cause: "The description of a process contains an invalid name, file or variable.",
		Fix:   "Correct the setting in the message in the runtime configuration of the package.",
	}
	ErrProgramsUnsupported = errcode.Code{
		Name: "ProgramsUnsupported", Class: errcode.Unsupported,
		Cause: "Runtimes run as processes on Linux only.",
		Fix:   "Use the runtime External on this machine, or run the control plane on Linux.",
	}
	ErrProgramsInUse = errcode.Code{
		Name: "ProgramsInUse", Class: errcode.Conflict,
		Cause: "Another process runs the runtimes of this folder.",
		Fix:   "Stop the other process, or use another data directory.",
	}
	ErrProgramFolder = errcode.Code{
		Name: "ProgramFolder", Class: errcode.Unavailable,
		Cause: "The folder of the process runtime cannot be written.",
		Fix:   "Free some space, and check who may write to the data directory.",
	}
)
