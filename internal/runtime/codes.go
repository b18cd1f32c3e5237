package runtime

import (
	"errors"

	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrNoProgram is the code for a package without a runnable image.
var ErrNoProgram = errcode.Code{
	Name: "NoProgram", Class: errcode.Invalid, Final: true,
	Cause: "The package contains no runnable image: its image names no program to start, or one that is not among its files. An update to such a package is rolled back at once.",
	Fix: rebuild +
		" To install a package without its runtime, select the runtime None for it with the flag --package-runtime of `xpkg up` or of the manager.",
}

const (
	rebuild = "Rebuild the package with --embed-go-program, --embed-runtime-image or --embed-runtime-image-tarball, or name the image in spec.controller.image of its metadata, or in install.yaml of a package of the first generation."
	flag    = "--package-runtime="
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code { return []errcode.Code{ErrNoProgram, ErrRuntimeConfig} }

// AdviseWithoutRuntime adds to a NoProgram error of a package the commands that restart a manager with the choice c so
// that the package is installed without its runtime. A manager that runs it as a process runs on this machine. It
// returns any other error as it is.
func (c Choice) AdviseWithoutRuntime(err error, kind, name string) error {
	if !errors.Is(err, ErrNoProgram) {
		return err
	}
	restart := wording.RestartEither(
		[]string{flag + c.with(kind, name, None, Process)}, []string{flag + c.with(kind, name, None, Deployment)})
	if c.Of(kind, name) == Process {
		restart = wording.RestartLocal(flag + c.with(kind, name, None, Process))
	}
	return errcode.From(err).
		WithDo("%s To install the package without its runtime, restart the manager with %s.", rebuild, restart)
}

// AdviseRuntime returns a sentence with the commands that restart a manager with the choice c so that it runs the
// runtime of a package.
func (c Choice) AdviseRuntime(kind, name string) string {
	return "To run it, restart the manager with " +
		wording.RestartEither([]string{flag + c.with(kind, name, Process, Process)}, []string{
			flag + c.with(kind, name, Deployment, Deployment),
		}) + "."
}
