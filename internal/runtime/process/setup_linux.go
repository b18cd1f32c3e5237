package process

import (
	"encoding/json"
	"os"
)

// InitCommand is the argument with which the executable is run to start a program.
const InitCommand = "runtime-init"

// The open files of the step between supervisor and program.
const (
	// controlFile brings the setup, and ends when the supervisor does.
	controlFile = 3
	// reportFile takes reports, one JSON document each.
	reportFile = 4
)

// kind is what the step in between does.
type kind string

const (
	// inNamespaces prepares new namespaces, in which it runs already.
	inNamespaces kind = "namespaces"
	// inChroot changes its root and its user.
	inChroot kind = "chroot"
	// asItIs runs the program without a root of its own.
	asItIs kind = "plain"
	// asGuard starts the step again for one of the two above, and stays to end all
	// that comes of it.
	asGuard kind = "guard"
)

// setup tells the step in between what to do.
type setup struct {
	Kind kind `json:"kind"`
	// Probe says to end before the program is started: it was only to be seen whether
	// it would work.
	Probe bool `json:"probe,omitempty"`
	// Guarded is the setup that a guard passes on.
	Guarded *setup `json:"guarded,omitempty"`

	// Name is the host name.
	Name string `json:"name,omitempty"`
	// Root is the folder that becomes the root. With a Lower folder it becomes an
	// overlay of that, written to Upper.
	Root  string `json:"root,omitempty"`
	Lower string `json:"lower,omitempty"`
	Upper string `json:"upper,omitempty"`
	Work  string `json:"work,omitempty"`
	// UserXattr is set for overlays that are not made by root.
	UserXattr bool `json:"userXattr,omitempty"`
	// Proc says to mount /proc.
	Proc bool `json:"proc,omitempty"`
	// Binds are files of the machine that appear in the root.
	Binds []bind `json:"binds,omitempty"`
	// Files is the folder of the given files, and Paths where the program looks for
	// them.
	Files string   `json:"files,omitempty"`
	Paths []string `json:"paths,omitempty"`

	// User is the user and group to become; 0 to stay the same.
	User int `json:"user,omitempty"`
	// Processes bounds the processes of the user in the namespace; 0 for no bound.
	Processes int `json:"processes,omitempty"`

	Path string   `json:"path,omitempty"`
	Args []string `json:"args,omitempty"`
	Env  []string `json:"env,omitempty"`
	Dir  string   `json:"dir,omitempty"`
}

// bind makes a file of the machine appear in a root, read-only.
type bind struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// report is what the step in between says.
type report struct {
	// Ready comes just before the program takes over, or at the end of a probe.
	Ready bool `json:"ready,omitempty"`
	// Error says why it does not, and Stage names what failed.
	Error string `json:"error,omitempty"`
	Stage string `json:"stage,omitempty"`
	// PID is the program that a guard has started.
	PID int `json:"pid,omitempty"`
	// Ended says how the program of a guard has ended.
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

// send writes a setup or a report, one line each.
func send(to *os.File, v any) error { return json.NewEncoder(to).Encode(v) }
