package up

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/up/datadir"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// State contains the addresses of a control plane and the state of its manager. It is written to
// state.json when the control plane is ready and when the manager ends or recovers, and removed
// when the control plane stops.
type State struct {
	// DataDir is the data directory.
	DataDir string `json:"dataDir"`
	// PID is the process that runs the registry and the manager.
	PID int `json:"pid"`
	// ControlPlanePID is the child process, which runs etcd and the API server.
	ControlPlanePID int `json:"controlPlanePID"`
	// Server is the URL of the API server.
	Server string `json:"server"`
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	// Registry is the host:port of the registry, which serves plain HTTP.
	Registry string `json:"registry"`
	// Started is the time at which the start began.
	Started time.Time `json:"started"`
	// Kubernetes is the version of the API server, for example "v1.37.1".
	Kubernetes string `json:"kubernetes"`
	// Version is the version of xpkg.
	Version string `json:"version,omitempty"`
	// ManagerFailure is the reason why the package manager has ended, and ManagerFix the fix. Both
	// are empty while the manager runs. It is started again after a pause.
	ManagerFailure string `json:"managerFailure,omitempty"`
	ManagerFix     string `json:"managerFix,omitempty"`
	// Core is the Crossplane core of the control plane. It is empty without one.
	Core Core `json:"core,omitzero"`
}

// Core is a Crossplane core that runs as a process of the control plane.
type Core struct {
	// Version is the version, or empty if it is unknown.
	Version string `json:"version,omitempty"`
	// Health is the URL of the readiness check.
	Health string `json:"health"`
}

// stateFile writes the state of a control plane when it is ready, and later each time that it changes.
type stateFile struct {
	path string
	// warn reports a failure to write a change.
	warn func(error)

	mu      sync.Mutex
	state   State
	written bool
}

// write writes the state of a control plane that is ready, and returns it.
func (f *stateFile) write(s State) (State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.ManagerFailure, s.ManagerFix, s.Core = f.state.ManagerFailure, f.state.ManagerFix, f.state.Core
	f.state, f.written = s, true
	return s, datadir.WriteJSON(f.path, s)
}

// setManager records the reason why the manager has ended. Nil records that the manager runs.
func (f *stateFile) setManager(failure error) {
	f.change(func(s *State) {
		s.ManagerFailure, s.ManagerFix = "", ""
		if failure != nil {
			s.ManagerFailure, s.ManagerFix = failure.Error(), errcode.From(failure).Do
		}
	})
}

// setCore records the Crossplane core.
func (f *stateFile) setCore(c Core) {
	f.change(func(s *State) { s.Core = c })
}

// change changes the state, and writes it if the control plane is ready and the state differs.
func (f *stateFile) change(apply func(*State)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.state
	apply(&f.state)
	if !f.written || f.state == before {
		return
	}
	if err := datadir.WriteJSON(f.path, f.state); err != nil {
		f.warn(err)
	}
}

func readState(dir string) (State, error) {
	var s State
	content, err := os.ReadFile(filepath.Join(dir, datadir.StateName))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(content, &s)
}
