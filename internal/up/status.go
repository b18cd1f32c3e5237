package up

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/xpkg-dev/xpkg/internal/up/datadir"
)

// Report is the status of a data directory.
type Report struct {
	// DataDir is the absolute path of the directory.
	DataDir string `json:"dataDir"`
	// Running reports whether a process holds the directory.
	Running bool `json:"running"`
	// Ready reports whether the start is finished, so that State is known.
	Ready bool `json:"ready"`
	// PID is the process that holds the directory, or 0 if it is unknown.
	PID int `json:"pid,omitempty"`
	// State contains the addresses of the components.
	State State `json:"state,omitzero"`
	// Created is the time at which the directory was created.
	Created time.Time `json:"created,omitzero"`
	// Checks are the health checks of the parts. Only Examine sets them.
	Checks []Check `json:"checks,omitempty"`
	// Sizes are the sizes in bytes by folder. Only Examine sets them.
	Sizes map[string]int64 `json:"sizes,omitempty"`
}

// Status returns the status of a data directory. It contacts no process, so it returns immediately.
// A missing directory has no control plane. Status fails with ErrDataDirForeign, ErrDataDirUnsafe,
// ErrDataDirVersion or ErrDataDirUnusable.
func Status(dataDir string) (Report, error) {
	path, err := datadir.Absolute(dataDir)
	if err != nil {
		return Report{}, err
	}
	if err := datadir.Check(path); err != nil {
		return Report{}, err
	}
	r := Report{DataDir: path, Running: datadir.Held(path, datadir.LockName)}
	if created, err := datadir.Created(path); err == nil {
		r.Created = created
	}
	if !r.Running {
		return r, nil
	}
	if r.PID, err = datadir.OwnerPID(path); err != nil || r.PID == 0 {
		r.PID = datadir.RecordedPID(path)
	}
	// A killed process has left the state of another process ID.
	if state, err := readState(path); err == nil && state.PID == r.PID {
		r.State, r.Ready = state, true
	}
	return r, nil
}

// startPoll is the interval at which AwaitStart reads the status.
const startPoll = 100 * time.Millisecond

// AwaitStart is like Status. While the control plane starts, it waits until it is ready or its process has ended, which
// happens at the deadline of the start at the latest.
func AwaitStart(ctx context.Context, dataDir string) (Report, error) {
	for {
		r, err := Status(dataDir)
		if err != nil || r.Ready || !r.Running {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-time.After(startPoll):
		}
	}
}

// Examine is like Status, and also checks the health of the parts and their sizes on disk. Each
// health check takes at most healthLimit.
func Examine(ctx context.Context, dataDir string) (Report, error) {
	r, err := Status(dataDir)
	if err != nil {
		return r, err
	}
	r.Sizes = map[string]int64{}
	for _, folder := range []string{"etcd", "registry", "cache", "logs"} {
		r.Sizes[folder] = diskSize(filepath.Join(r.DataDir, folder))
	}
	if r.Ready {
		r.Checks = []Check{checkAPI(ctx, r.State), checkRegistry(ctx, r.State), checkManager(r.State)}
		if r.State.Core != (Core{}) {
			r.Checks = append(r.Checks, checkCore(ctx, r.State.Core))
		}
	}
	return r, nil
}

// diskSize returns the total size of the files in a folder. It ignores files that are deleted at
// the same time. A sparse file counts with its full size.
func diskSize(folder string) int64 {
	var total int64
	_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			return err
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	return total
}
