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

// startSupervisor starts the supervisor of package processes in a local folder. Closing the supervisor stops
// all processes.
func startSupervisor(
	dir string, source *fetch.Source, log *slog.Logger,
) (*processruntime.Host, *sandbox.Roots, io.Closer, error) {
	roots, err := sandbox.NewRoots(sandbox.RootsOptions{Dir: filepath.Join(dir, "images"), Source: source})
	if err != nil {
		return nil, nil, nil, err
	}
	supervisor, err := sandbox.New(sandbox.Options{Dir: dir, Images: roots, Log: log})
	if err != nil {
		return nil, nil, nil, err
	}
	return &processruntime.Host{Supervisor: supervisor, Images: roots, Address: processruntime.MachineAddress()}, roots,
		supervisor, nil
}

// pruneWith deletes unpacked images that neither a package nor core requires whenever the set of required contents
// changes.
func pruneWith(use func(string, []oci.Digest) error, roots *sandbox.Roots, core Core) func(string, []oci.Digest) error {
	return func(cluster string, contents []oci.Digest) error {
		required := contents
		if core != nil {
			required = append(core.Contents(), contents...)
		}
		return errors.Join(use(cluster, contents), roots.Prune(required))
	}
}
