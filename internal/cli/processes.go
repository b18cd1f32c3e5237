package cli

import (
	"errors"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/manager"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/runtime/local"
	"github.com/xpkg-dev/xpkg/internal/runtime/process"
)

// startProcesses makes what runs programs as processes, in a folder of this machine.
// All of them end when it is closed.
func startProcesses(dir string, source *content.Source, log *slog.Logger) (*manager.Processes, *process.Roots, io.Closer, error) {
	roots, err := process.NewRoots(process.RootsOptions{Dir: filepath.Join(dir, "images"), Source: source})
	if err != nil {
		return nil, nil, nil, err
	}
	supervisor, err := process.New(process.Options{Dir: dir, Images: roots, Log: log})
	if err != nil {
		return nil, nil, nil, err
	}
	return &manager.Processes{Supervisor: supervisor, Images: roots, Address: local.MachineAddress()}, roots, supervisor, nil
}

// alsoPrune removes unpacked images that no package needs any more whenever it is told
// what they need.
func alsoPrune(use func(string, []oci.Digest) error, roots *process.Roots) func(string, []oci.Digest) error {
	return func(cluster string, contents []oci.Digest) error {
		return errors.Join(use(cluster, contents), roots.Prune(contents))
	}
}
