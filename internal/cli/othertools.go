package cli

import (
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

// replacement is a command of another command-line tool, and the command that replaces it.
type replacement struct {
	// command are its words. The longest entry that begins a command line counts.
	command string
	// fix is an imperative sentence that names the command of xpkg, or the tool that remains in charge.
	fix string
}

// replacements are commands of the Crossplane CLI, helm, kubectl, cargo and uv for which xpkg has no command of the same
// name. The Crossplane CLI has its package commands below `xpkg`, which expandShorthand removes.
var replacements = []replacement{
	{"add", "Use `xpkg install PACKAGE`."},
	{"alpha render", composes},
	{"batch", "Use `xpkg build` and `xpkg push` for each package of the family."},
	{"beta convert", "Use the Crossplane CLI to convert compositions and claims."},
	{"beta top", "Use `kubectl top pods --namespace crossplane-system`."},
	{"beta trace", "Use `xpkg tree` for packages, and the Crossplane CLI for composite resources."},
	{"beta validate", "Use `xpkg validate RESOURCES --package EXTENSION`."},
	{"cluster top", "Use `kubectl top pods --namespace crossplane-system`."},
	{"completions", "Use `xpkg completion SHELL`."},
	{"composition", composes},
	{"config", "Set KUBECONFIG and the flags of each command; see `xpkg COMMAND --help`."},
	{"delete", "Use `xpkg uninstall NAME`."},
	{"dep", locks},
	{"dependency", locks},
	{"get", "Use `xpkg list`, or `xpkg describe NAME`."},
	{"get-crds", "Use `xpkg extract PACKAGE`, which prints the definitions of a package, and `xpkg deps vendor PACKAGE --to DIR`, which collects those of its dependencies."},
	{"info", "Use `xpkg inspect PACKAGE` for a package, and `xpkg describe NAME` for an installed one."},
	{"lock", locks},
	{"operation", composes},
	{"package", "Use `xpkg build`."},
	{"project", "Use `xpkg build`, `xpkg push` and `xpkg up`."},
	{"publish", "Use `xpkg push PACKAGE`."},
	{"remove", "Use `xpkg uninstall NAME`."},
	{"render", composes},
	{"repo", "Name a package by its registry: no list of repositories is needed."},
	{"resource trace", "Use `xpkg tree` for packages, and the Crossplane CLI for composite resources."},
	{"resource validate", "Use `xpkg validate RESOURCES --package EXTENSION`."},
	{"rm", "Use `xpkg uninstall NAME`."},
	{"show", "Use `xpkg inspect PACKAGE` for a package, and `xpkg describe NAME` for an installed one."},
	{"template", "Use `xpkg plan install PACKAGE`, which shows the objects, or `xpkg extract PACKAGE`."},
	{"top", "Use `kubectl top pods --namespace crossplane-system`."},
	{"trace", "Use `xpkg tree` for packages, and the Crossplane CLI for composite resources."},
}

const (
	locks    = "Use `xpkg resolve PACKAGE --lock FILE`, which writes the versions and digests of a package and its dependencies."
	composes = "Use the Crossplane CLI: xpkg manages packages, and Crossplane composes resources."
)

// replaced returns the usage error of a command of another tool, or nil.
func replaced(program string, args []string) error {
	var found replacement
	for _, r := range replacements {
		words := strings.Fields(r.command)
		if len(args) >= len(words) && slices.Equal(args[:len(words)], words) && len(r.command) > len(found.command) {
			found = r
		}
	}
	if found.command == "" {
		return nil
	}
	fix := strings.ReplaceAll(found.fix, "`xpkg ", "`"+program+" ")
	return terminal.ErrUsage.New(nil, "%s has no command %s", program, found.command).WithDo("%s", fix)
}
