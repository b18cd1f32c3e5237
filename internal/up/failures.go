package up

import (
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/up/child"
)

// Failures of a start that the child process reports too.
var (
	ErrControlPlaneMissing = child.ErrMissing
	ErrControlPlaneFailed  = child.ErrFailed
	ErrPortInUse           = child.ErrPortInUse
	ErrDataDirInUse        = child.ErrDataDirInUse
	ErrDataDirUnusable     = child.ErrDataDirUnusable
)

// Failures of the data directory, of the parts in this process, and of a control
// plane that runs in the background.
var (
	ErrDataDirForeign = failure.Register(failure.Code{
		Name: "DataDirForeign", Class: failure.Conflict,
		Cause: "The directory has files in it that xpkg did not make.",
		Fix:   "Choose an empty directory, or one that does not exist yet, with --data-dir.",
	})
	ErrDataDirVersion = failure.Register(failure.Code{
		Name: "DataDirVersion", Class: failure.Unsupported,
		Cause: "Another version of xpkg made the data directory, with a layout that this one does not know.",
		Fix:   "Use the version of xpkg that made it, or choose another directory with --data-dir.",
	})
	ErrRegistryFailed = failure.Register(failure.Code{
		Name: "RegistryFailed", Class: failure.Unavailable,
		Cause: "The registry of the control plane did not start, or ended by itself.",
		Fix:   "Read logs/registry.log in the data directory.",
	})
	ErrNotRunning = failure.Register(failure.Code{
		Name: "ControlPlaneNotRunning", Class: failure.NotFound,
		Cause: "No control plane runs with this data directory.",
		Fix:   "Start one with \"xpkg up\", or name its directory with --data-dir.",
	})
	ErrNotStopped = failure.Register(failure.Code{
		Name: "ControlPlaneNotStopped", Class: failure.Timeout,
		Cause: "The process of the control plane did not end when it was told to.",
		Fix:   "Read logs/up.log in the data directory, and end the process by its id.",
	})
	ErrNotReady = failure.Register(failure.Code{
		Name: "ControlPlaneNotReady", Class: failure.Unavailable,
		Cause: "The control plane in the background ended before it was ready.",
		Fix:   "Read logs/up.log in the data directory.",
	})
)
