package dependencies

import (
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

// SolveFlags select how a new dependency tree is resolved.
type SolveFlags struct{ resolverFlags }

// Solve resolves the dependency tree of folders, files and references.
func (f SolveFlags) Solve(env *terminal.Env, what []string) (lockfile.File, error) {
	return TreeFlags{resolverFlags: f.resolverFlags}.of(env, what)
}
