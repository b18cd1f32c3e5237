package child

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Failures of the start of a control plane, and of a running one.
var (
	ErrMissing = errcode.Code{
		Name: "ControlPlaneMissing", Class: errcode.NotFound,
		Cause: "The program xpkg-controlplane, which holds the API server, is neither beside xpkg nor named by XPKG_CONTROLPLANE, and was not built.",
		Fix:   "Run `xpkg up --build`, which builds it with Go in several minutes, or put the program of the archive xpkg-controlplane of the same release beside xpkg.",
	}
	ErrPortInUse = errcode.Code{
		Name: "PortInUse", Class: errcode.Conflict,
		Cause: "Another program listens on a port that the control plane needs.",
		Fix:   "Stop the other program, or choose another port with --port for the API server or --registry-port for the registry.",
	}
	ErrDataDirInUse = errcode.Code{
		Name: "DataDirInUse", Class: errcode.Conflict,
		Cause: "Another process uses the data directory.",
		Fix:   "See it with `xpkg status`, stop it with `xpkg down`, or choose another directory with --data-dir.",
	}
	ErrDataDirUnusable = errcode.Code{
		Name: "DataDirUnusable", Class: errcode.Usage,
		Cause: "The data directory cannot be created, read or written.",
		Fix:   "Choose a directory that you may write to with --data-dir.",
	}
	ErrFailed = errcode.Code{
		Name: "ControlPlaneFailed", Class: errcode.Unavailable,
		Cause: "The database, the API server or its controllers did not start, or ended by themselves.",
		Fix:   "Read logs/controlplane.log in the data directory.",
	}
)

// codes are the codes by their names in the report of the control plane.
var codes = map[string]errcode.Code{
	"PortInUse":       ErrPortInUse,
	"DataDirInUse":    ErrDataDirInUse,
	"DataDirUnusable": ErrDataDirUnusable,
}
