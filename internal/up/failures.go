package up

import (
	"github.com/xpkg-dev/xpkg/internal/up/child"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Failures of a start that the child process reports too.
var (
	ErrControlPlaneMissing = child.ErrMissing
	ErrControlPlaneFailed  = child.ErrFailed
	ErrPortInUse           = child.ErrPortInUse
	ErrDataDirInUse        = child.ErrDataDirInUse
	ErrDataDirUnusable     = child.ErrDataDirUnusable
)

// Failures of the data directory.
var (
	ErrDataDirForeign = datadir.ErrForeign
	ErrDataDirUnsafe  = datadir.ErrUnsafe
	ErrDataDirVersion = datadir.ErrVersion
)

// Failures of the parts in this process, and of a control plane that runs in the
// background.
var (
	ErrRegistryFailed = errcode.Code{
		Name: "RegistryFailed", Class: errcode.Unavailable,
		Cause: "The registry of the control plane did not start, or ended by itself.",
		Fix:   "Read logs/registry.log in the data directory.",
	}
	ErrNotRunning = errcode.Code{
		Name: "ControlPlaneNotRunning", Class: errcode.NotFound,
		Cause: "No control plane runs with this data directory.",
		Fix:   "Start one with `xpkg up`, or name its directory with --data-dir.",
	}
	ErrNotStopped = errcode.Code{
		Name: "ControlPlaneNotStopped", Class: errcode.Timeout,
		Cause: "The process of the control plane did not stop when it was requested to.",
		Fix:   "Read logs/up.log in the data directory, and end the process by its id.",
	}
	ErrNotReady = errcode.Code{
		Name: "ControlPlaneNotReady", Class: errcode.Unavailable,
		Cause: "The control plane ended before it was ready, or was not ready in time: the machine is busy, the database is damaged, or the manager fails.",
		Fix:   "Read logs/controlplane.log and logs/up.log in the data directory. Allow more time with --start-timeout, or repair the database as the message describes.",
	}
)
