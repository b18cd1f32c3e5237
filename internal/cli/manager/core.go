package manager

import (
	"context"

	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/runtime/processruntime"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Core is the Crossplane core of a local control plane.
type Core interface {
	// Report sets the functions that report the state of core.
	Report(CoreReports)
	// Contents returns the digest of the image that core runs, if it is known.
	Contents() []oci.Digest
	// Start obtains the image, sets the version against which the manager checks packages, and starts core when the
	// manager becomes ready. The options are ready when core is. It returns the function that waits for the end of core
	// after ctx has ended.
	Start(
		ctx context.Context, o *controller.Options, source *fetch.Source, roots *sandbox.Roots, host *processruntime.Host,
		dir string,
	) (wait func(), err error)
	// Close closes the file of the image.
	Close() error
}

// CoreReports are functions that report the state of core.
type CoreReports struct {
	// Ready is called with the version and the URL of the readiness check each time that core becomes ready, and Failed
	// each time that it does not become ready.
	Ready  func(version, health string)
	Failed func(error)
	// Refused is called if core cannot be started with its image.
	Refused func(error)
}
