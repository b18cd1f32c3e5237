package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/wording"
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
	{"auth", "Use `xpkg doctor`, which checks the permissions of the manager."},
	{"batch", "Use `xpkg build` and `xpkg push` for each package of the family."},
	{"beta convert", "Use the Crossplane CLI to convert compositions and claims."},
	{"beta top", "Use `kubectl top pods --namespace crossplane-system`."},
	{"beta trace", "Use `xpkg tree` for packages, and the Crossplane CLI for composite resources."},
	{"beta validate", "Use `xpkg validate RESOURCES --package EXTENSION`."},
	{"check", "Use `xpkg lint`."},
	{"ci", "Use `xpkg sync --lock FILE --prune`."},
	{"clean", "Use `xpkg cache prune`."},
	{"cluster top", "Use `kubectl top pods --namespace crossplane-system`."},
	{"completions", "Use `xpkg completion SHELL`."},
	{"composition convert", "Use the Crossplane CLI to convert compositions."},
	{"controlplane", "Use `xpkg up --detach`, or `xpkg bootstrap --apply` in a cluster."},
	{"ctp", "Use `xpkg up --detach`, or `xpkg bootstrap --apply` in a cluster."},
	{"ctx", "Pass --context to the command, or run `kubectl config use-context CONTEXT`."},
	{"delete", "Use `xpkg uninstall NAME`."},
	{"dep", locks},
	{"dependency", locks},
	{"edit", "Use `xpkg update NAME` with the flag of the field, or `kubectl edit provider.pkg NAME`."},
	{"env", "Use `xpkg config view`."},
	{"events", "Use `xpkg describe NAME`, which shows the events of a package."},
	{"explain", "Use `xpkg show KIND`, which prints the fields of a kind."},
	{"fetch", "Use `xpkg pull PACKAGE`."},
	{"freeze", locks},
	{"function generate", "Use `xpkg init function NAME`."},
	{"get", "Use `xpkg list`, or `xpkg describe NAME`."},
	{"get-crds", "Use `xpkg extract PACKAGE`, which prints the definitions of a package, and `xpkg deps vendor PACKAGE --to DIR`, which collects those of its dependencies."},
	{"info", "Use `xpkg inspect PACKAGE` for a package, and `xpkg describe NAME` for an installed one."},
	{"label", "Use `kubectl label provider.pkg NAME KEY=VALUE`."},
	{"lock", locks},
	{"new", "Use `xpkg init KIND NAME`."},
	{"operation", composes},
	{"package", "Use `xpkg build`."},
	{"pip", "Omit the word: use `xpkg install PACKAGE`, `xpkg list`, `xpkg tree` or `xpkg uninstall NAME`."},
	{"profile", "Use `xpkg config view`."},
	{"project", "Use `xpkg build`, `xpkg push` and `xpkg up`."},
	{"publish", "Use `xpkg push PACKAGE`."},
	{"remove", "Use `xpkg uninstall NAME`."},
	{"repo", "Name a package by its registry: no list of repositories is needed. `xpkg versions REPOSITORY` lists the versions of a package."},
	{"resource trace", "Use `xpkg tree` for packages, and the Crossplane CLI for composite resources."},
	{"resource validate", "Use `xpkg validate RESOURCES --package EXTENSION`."},
	{"rm", "Use `xpkg uninstall NAME`."},
	{"rollout history", "Use `xpkg history NAME`."},
	{"rollout status", "Use `xpkg describe NAME`, or --wait of the command."},
	{"rollout undo", "Use `xpkg rollback NAME`."},
	{"run", "Use `xpkg up`, which runs packages on this machine."},
	{"template", "Use `xpkg plan install PACKAGE`, which shows the objects, or `xpkg extract PACKAGE`."},
	{"test", "Use `xpkg validate`."},
	{"top", "Use `kubectl top pods --namespace crossplane-system`."},
	{"trace", "Use `xpkg tree` for packages, and the Crossplane CLI for composite resources."},
	{"uxp", "Use `xpkg bootstrap --apply`."},
	{"vendor", "Use `xpkg deps vendor`."},
	{"verify", "Use `xpkg cache verify` for the package cache; every other command verifies the digests of what it reads."},
	{"wait", "Use --wait of the command, or `xpkg list --watch`."},
	{"xrd generate", "Write the XRD, and check it with `xpkg lint`."},
}

// replacedFlags are flags of other tools that a command does not have, and an imperative sentence with the replacement. The
// empty command stands for every command.
var replacedFlags = map[[2]string]string{
	{"", "--all-namespaces"}:     "Omit the flag: packages are not in a namespace.",
	{"", "-A"}:                   "Omit the flag: packages are not in a namespace.",
	{"", "--timeout"}:            "Use --wait DURATION, which waits and ends after this time.",
	{"", "--create-namespace"}:   "Omit the flag: packages are not in a namespace.",
	{"", "--set"}:                "Use --runtime-config NAME for the settings of a runtime.",
	{"", "--kube-context"}:       "Use --context.",
	{"", "--debug"}:              "Use --verbose.",
	{"", "-n"}:                   "Omit the flag: packages are not in a namespace.",
	{"", "--namespace"}:          "Omit the flag: packages are not in a namespace.",
	{"apply", "-f"}:              "Use `xpkg install PACKAGE` for a package, and `kubectl apply -f FILE` for objects. `xpkg apply` carries out a plan.",
	{"install", "-f"}:            "Use --runtime-config NAME for the settings of a runtime.",
	{"tree", "--invert"}:         "Use `xpkg why NAME`, which shows the packages that require a package.",
	{"tree", "--depth"}:          "Omit the flag: `xpkg tree NAME` shows one package with its dependencies.",
	{"", "--values"}:             "Use --runtime-config NAME for the settings of a runtime.",
	{"install", "--version"}:     "Write the version after the reference, as in `xpkg install ghcr.io/acme/boats:v1.0.0`.",
	{"install", "--locked"}:      "Use `xpkg install --lock FILE`.",
	{"install", "--frozen"}:      "Use `xpkg install --lock FILE`.",
	{"extract", "--from-daemon"}: "Save the image with `docker save IMAGE -o image.tar`, and run `xpkg extract image.tar`.",
	{"login", "--password"}:      "Use --password-stdin: other users of the machine can read the arguments of a command.",
	{"login", "-p"}:              "Use --password-stdin: other users of the machine can read the arguments of a command.",
	{"login", "--token"}:         "Pass the token with --username and --password-stdin.",
	{"login", "-t"}:              "Pass the token with --username and --password-stdin.",
	{"uninstall", "--force"}:     "Use --yes. Custom resources that block the deletion have finalizers: see `xpkg describe NAME`.",
	{"version", "--client"}:      "Omit the flag: `xpkg version` contacts no server.",
}

// habit is the beginning of a command line of another tool that is an error of a command of xpkg with the same name.
type habit struct {
	// command are its words, and part is a part of the error.
	command, part string
	// fix is an imperative sentence with the replacement, in which FIRST and SECOND stand for the arguments.
	fix string
	// fits reports whether the arguments are those of the habit; nil stands for all arguments.
	fits func(args []string) bool
}

var habits = []habit{
	{"cache clean", unexpectedArgument, "Use `xpkg cache prune`.", nil},
	{"config set", unexpectedArgument, "Edit the configuration file, which `xpkg config view` names.", nil},
	{"init", "is not provider, configuration or function", "Write the kind before the name, as in `xpkg init function NAME`.", nil},
	{"install", "is not provider, configuration or function", "Write the kind or the reference first, as in `xpkg install ghcr.io/acme/boats:v1.0.0 boats` or `xpkg install provider ghcr.io/acme/boats:v1.0.0 boats`.", nil},
	{"list", unexpectedArgument, "Use `xpkg describe NAME` for one package, and `xpkg list` for all.", nil},
	{"ls", unexpectedArgument, "Use `xpkg describe NAME` for one package, and `xpkg list` for all.", nil},
	{"registry login", unexpectedArgument, "Use `xpkg login HOST`.", nil},
	{"registry logout", unexpectedArgument, "Use `xpkg logout HOST`.", nil},
	{"show", unexpectedArgument, "Use `xpkg show FIRST --field SECOND`.", isField},
	{"show", unexpectedArgument, "Use `xpkg inspect PACKAGE`.", nil},
	{"status", unexpectedArgument, "Use `xpkg describe NAME`.", nil},
	{"update", "no package is given", "Name packages, or use `xpkg update --all`.", nil},
	{"upgrade", "no package is given", "Name packages, or use `xpkg update --all`.", nil},
}

// replacedUse returns the replacement for a command line of another tool that is an error of a command of xpkg, or "".
func replacedUse(why string, args []string) string {
	for _, h := range habits {
		words := strings.Fields(h.command)
		if len(args) < len(words) || !slices.Equal(args[:len(words)], words) || !strings.Contains(why, h.part) {
			continue
		}
		rest := args[len(words):]
		if h.fits == nil {
			return h.fix
		}
		if h.fits(rest) {
			return strings.NewReplacer("FIRST", wording.ShellWord(rest[0]), "SECOND", wording.ShellWord(rest[1])).Replace(h.fix)
		}
	}
	return ""
}

// isField reports whether arguments are a kind and the path of a field, as of `kubectl explain`. The first argument of `helm show` is a
// part of a chart.
func isField(args []string) bool {
	return len(args) == 2 && !isFlag(args[0]) && !isFlag(args[1]) && !strings.ContainsAny(args[1], "/:@") &&
		!slices.Contains([]string{"all", "chart", "crds", "readme", "values"}, args[0])
}

// replacedFlag returns the replacement for the first flag of another tool in the arguments of a command, or "".
func replacedFlag(command string, args []string) string {
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		if !isFlag(name) {
			continue
		}
		if fix := cmp.Or(replacedFlags[[2]string{command, name}], replacedFlags[[2]string{"", name}]); fix != "" {
			return fix
		}
	}
	return ""
}

const (
	locks    = "Use `xpkg resolve PACKAGE --lock FILE`, which writes the versions and digests of a package and its dependencies."
	composes = "Use the Crossplane CLI: xpkg manages packages, and Crossplane composes resources."
)

// replaced returns the usage error of a command of another tool, or nil.
func replaced(program string, args []string) error {
	found, ok := replacementOf(args)
	if !ok {
		return nil
	}
	return terminal.ErrUsage.New(nil, "%s has no command %s", program, found.command).WithDo("%s", namedAs(program, found.fix))
}

// replacementOf returns the replacement of the command at the beginning of arguments.
func replacementOf(args []string) (found replacement, ok bool) {
	for _, r := range replacements {
		words := strings.Fields(r.command)
		if len(args) >= len(words) && slices.Equal(args[:len(words)], words) && len(r.command) > len(found.command) {
			found, ok = r, true
		}
	}
	return found, ok
}

// namedAs returns a sentence with the commands of xpkg under the name of the program.
func namedAs(program, text string) string { return strings.ReplaceAll(text, "`xpkg ", "`"+program+" ") }
