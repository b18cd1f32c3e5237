package up

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/xpkg-dev/xpkg/internal/up/datadir"
)

// State contains the addresses of a control plane. It is written to state.json when the
// control plane is ready, and removed when it stops.
type State struct {
	// DataDir is the data directory.
	DataDir string `json:"dataDir"`
	// PID is the process that runs the registry and the manager.
	PID int `json:"pid"`
	// ControlPlanePID is its child, with etcd and the API server.
	ControlPlanePID int `json:"controlPlanePID"`
	// Server is the URL of the API server.
	Server string `json:"server"`
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	// Registry is the host:port of the registry, which speaks plain HTTP.
	Registry string `json:"registry"`
	// Started is when the start began.
	Started time.Time `json:"started"`
	// Kubernetes is the version of the API server, for example "v1.37.1".
	Kubernetes string `json:"kubernetes"`
	// Version is the version of xpkg.
	Version string `json:"version,omitempty"`
}

func readState(dir string) (State, error) {
	var s State
	content, err := os.ReadFile(filepath.Join(dir, datadir.StateName))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(content, &s)
}
