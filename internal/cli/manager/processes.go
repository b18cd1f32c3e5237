package manager

import (
	"errors"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/runtime/processruntime"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// startSupervisor makes what runs programs as processes, in a folder of this machine.
// All of them end when it is closed.
func startSupervisor(dir string, source *fetch.Source, log *slog.Logger) (*processruntime.Host, *sandbox.Roots, io.Closer, error) {
	roots, err := sandbox.NewRoots(sandbox.RootsOptions{Dir: filepath.Join(dir, "images"), Source: source})
	if err != nil {
		return nil, nil, nil, err
	}
	supervisor, err := sandbox.New(sandbox.Options{Dir: dir, Images: roots, Log: log})
	if err != nil {
		return nil, nil, nil, err
	}
	return &processruntime.Host{Supervisor: supervisor, Images: roots, Address: processruntime.MachineAddress()}, roots, supervisor, nil
}

// pruneWith removes unpacked images that no package needs any more whenever it is told
// what they need.
func pruneWith(use func(string, []oci.Digest) error, roots *sandbox.Roots) func(string, []oci.Digest) error {
	return func(cluster string, contents []oci.Digest) error {
		return errors.Join(use(cluster, contents), roots.Prune(contents))
	}
}
