package controlplane

import (
	"errors"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/up/child"
	"github.com/xpkg-dev/xpkg/internal/up/program"
	"github.com/xpkg-dev/xpkg/internal/version"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ensureProgram builds the program of the control plane if it is missing and --build is set.
func (c *UpCmd) ensureProgram(env *terminal.Env) error {
	_, err := up.FindProgram()
	if !errors.Is(err, child.ErrMissing) {
		return err
	}
	folder := program.Folder(version.Version)
	switch {
	case !version.Released():
		return errcode.From(err).WithDo(
			"Build it with `make build` in the checkout from which xpkg was built, and keep it beside xpkg or name it in %s.",
			child.Variable,
		)
	case !c.Build || folder == "":
		return err
	}
	progress := terminal.NewProgress(env.Stderr)
	defer progress.End()
	progress.Set("building the control plane %s with Go; the first build takes several minutes", version.Version)
	_, err = program.Build(env.Context,
		program.Options{Version: version.Version, Folder: folder, Progress: func(compiled int) {
			if progress.Tty || compiled%reportEvery == 0 {
				progress.Set("building the control plane: %d packages compiled", compiled)
			}
		}})
	return err
}

// reportEvery is the number of compiled packages between two lines of progress without a terminal.
const reportEvery = 200
