package sandbox

import (
	"encoding/json"
	"os"
)

// InitCommand is the argument with which the executable is run as init.
const InitCommand = "runtime-init"

// The file descriptors of init.
const (
	// controlFile is the pipe with the sandbox spec. It is closed when the supervisor exits.
	controlFile = 3
	// reportFile is the pipe for reports, each of which is a JSON document.
	reportFile = 4
	// programFile is the file from which init is executed.
	programFile = 5
	// portsFile is the socket to which init sends the descriptor of the filter.
	portsFile = 6
)

// kind is the task of init.
type kind string

const (
	// inNamespaces prepares the new namespaces in which init runs already.
	inNamespaces kind = "namespaces"
	// inChroot changes the root and the user.
	inChroot kind = "chroot"
	// asItIs runs the runtime in the root of the host.
	asItIs kind = "plain"
	// asReaper starts another init process for inChroot or asItIs, and ends all of its descendants.
	asReaper kind = "guard"
)

// sandboxSpec describes the sandbox that init prepares.
type sandboxSpec struct {
	Kind kind `json:"kind"`
	// Probe makes init exit before it executes the runtime, to test whether the machine allows the
	// sandbox.
	Probe bool `json:"probe,omitempty"`
	// Reaped is the sandbox spec of the runtime that a reaper starts.
	Reaped *sandboxSpec `json:"guarded,omitempty"`

	// Name is the host name.
	Name string `json:"name,omitempty"`
	// Root is the folder that becomes the root. With a Lower folder, the root is an overlay of
	// Lower, whose changes are written to Upper.
	Root  string `json:"root,omitempty"`
	Lower string `json:"lower,omitempty"`
	Upper string `json:"upper,omitempty"`
	Work  string `json:"work,omitempty"`
	// Written is the size in bytes of the file system in memory that contains Upper and Work. If it is 0, they are on the
	// disk.
	Written int64 `json:"written,omitempty"`
	// UserXattr is set for overlays that are mounted without root privileges.
	UserXattr bool `json:"userXattr,omitempty"`
	// Proc reports whether to mount /proc.
	Proc bool `json:"proc,omitempty"`
	// Binds are files of the machine that appear in the root.
	Binds []bind `json:"binds,omitempty"`
	// Files is the folder of the given files, and Paths are their paths in the sandbox.
	Files string   `json:"files,omitempty"`
	Paths []string `json:"paths,omitempty"`

	// User is the user ID and group ID to change to. Zero keeps the current ones.
	User int `json:"user,omitempty"`
	// Processes limits the processes of the user in the namespace. Zero sets no limit.
	Processes int `json:"processes,omitempty"`
	// Relocates reports whether the supervisor relocates the ports of the runtime.
	Relocates bool `json:"relocates,omitempty"`

	Path string   `json:"path,omitempty"`
	Args []string `json:"args,omitempty"`
	Env  []string `json:"env,omitempty"`
	Dir  string   `json:"dir,omitempty"`
}

// bind is a read-only bind mount of a host file.
type bind struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// report is a message from init to the supervisor.
type report struct {
	// Ready is set just before the runtime is executed, or at the end of a probe.
	Ready bool `json:"ready,omitempty"`
	// Error is the failure, and Stage the step that failed.
	Error string `json:"error,omitempty"`
	Stage string `json:"stage,omitempty"`
	// PID is the process that a reaper started.
	PID int `json:"pid,omitempty"`
	// Ended is the exit status of the process that a reaper started.
	Ended *ended `json:"ended,omitempty"`
}

type ended struct {
	Code   int `json:"code"`
	Signal int `json:"signal,omitempty"`
}

func (e ended) exit() Exit {
	if e.Signal != 0 {
		return exitSignal(signalOf(e.Signal))
	}
	return exitCode(e.Code)
}

// send writes a sandboxSpec or a report, one line each.
func send(to *os.File, v any) error { return json.NewEncoder(to).Encode(v) }
