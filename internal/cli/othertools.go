package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// replacement is a command of another command-line tool, and the command that replaces it.
type replacement struct {
	// command are its words. The longest entry that begins a command line counts.
	command string
	// fix is an imperative sentence that names the command of xpkg, or the tool that remains in charge.
	fix string
}

// replacements are commands of the Crossplane CLI, helm, kubectl, cargo and uv for which xpkg has no command of the
// same name. The Crossplane CLI has its package commands below `xpkg`, which expandShorthand removes.
var replacements = []replacement{
	{"add", "Use `xpkg install PACKAGE`."},
	{"alpha render op", composes},
	{"annotate", "Use `kubectl annotate provider.pkg NAME KEY=VALUE`."},
	{"api-resources", "Use `xpkg search` for the kinds of an index, and `kubectl api-resources` for those of a cluster."},
	{"audit", "Use `xpkg outdated`, which shows newer versions of installed packages."},
	{"auth", "Use `xpkg doctor`, which checks the permissions of the manager."},
	{"batch", "Use `xpkg build` and `xpkg push` for each package of the family."},
	{"beta", "Omit the word, or use the Crossplane CLI for compositions and their resources."},
	{"beta convert", "Use the Crossplane CLI to convert compositions and claims."},
	{"beta top", "Use `kubectl top pods --namespace crossplane-system`."},
	{"beta trace", "Use `xpkg tree` for packages, and the Crossplane CLI for composite resources."},
	{"beta validate", "Use `xpkg validate RESOURCES --package EXTENSION`."},
	{"ci", "Use `xpkg sync --lock FILE --prune`."},
	{"clean", "Use `xpkg cache prune`."},
	{"cluster", "Use `xpkg doctor`, which checks a cluster."},
	{"cluster top", "Use `kubectl top pods --namespace crossplane-system`."},
	{"cluster-info", "Use `xpkg doctor`."},
	{"completions", "Use `xpkg completion SHELL`."},
	{"composition", composes},
	{"composition convert", "Use the Crossplane CLI to convert compositions."},
	{"composition generate", "Use `xpkg init configuration NAME`, which creates a definition and its composition."},
	{"controlplane", "Use `xpkg up --detach`, or `xpkg bootstrap --apply` in a cluster."},
	{"create", "Use `xpkg init KIND NAME` for a new package, and `xpkg install PACKAGE` for a cluster."},
	{"ctp", "Use `xpkg up --detach`, or `xpkg bootstrap --apply` in a cluster."},
	{"ctx", "Pass --context to the command, or run `kubectl config use-context CONTEXT`."},
	{"delete", "Use `xpkg uninstall NAME`."},
	{"dep", "Use `xpkg dependency`, in the folder of the package."},
	{"dep clean-cache", "Use `xpkg cache prune`."},
	{"dependency build", locks},
	{"dependency clean-cache", "Use `xpkg cache prune`."},
	{"dependency update-cache", locks},
	{"deprecate", "Use `xpkg registry deprecate PACKAGE`."},
	{"edit", "Use `xpkg update NAME` with the flag of the field, or `kubectl edit provider.pkg NAME`."},
	{"env", "Use `xpkg config view`."},
	{"events", "Use `xpkg describe NAME`, which shows the events of a package."},
	{"explain", "Use `xpkg show KIND`, which prints the fields of a kind, or one of them with --field."},
	{"export", "Use `xpkg resolve PACKAGE --manifests`, which prints the objects that install everything."},
	{"fetch", "Use `xpkg pull PACKAGE`."},
	{"freeze", locks},
	{"function generate", "Use `xpkg init function NAME`."},
	{"get", "Use `xpkg list`, or `xpkg describe NAME`."},
	{"get-crds", "Use `xpkg extract PACKAGE`, which prints the definitions of a package, and `xpkg tree PACKAGE`, which lists its dependencies."},
	{"info", "Use `xpkg inspect PACKAGE` for a package, and `xpkg describe NAME` for an installed one."},
	{"label", "Use `kubectl label provider.pkg NAME KEY=VALUE`."},
	{"lock", locks},
	{"new", "Use `xpkg init KIND NAME`."},
	{"operation", composes},
	{"pack", "Use `xpkg build`."},
	{"package", "Use `xpkg build`."},
	{"patch", "Use `xpkg update NAME` with the flag of the field, or `kubectl patch provider.pkg NAME`."},
	{"pip", "Omit the word: use `xpkg install PACKAGE`, `xpkg list`, `xpkg tree` or `xpkg uninstall NAME`."},
	{"plugin", "Use `kubectl krew` for plug-ins of kubectl: xpkg has none."},
	{"profile", "Use `xpkg config view`."},
	{"project", "Use `xpkg build`, `xpkg push`, `xpkg up` and `xpkg dev` in the folder of the Project."},
	{"project init", "Use `xpkg init project NAME`."},
	{"project push", "Use `xpkg push PACKAGE`."},
	{"project stop", "Use `xpkg down`."},
	{"prune", "Use `xpkg autoremove`."},
	{"publish", "Use `xpkg push PACKAGE`."},
	{"purge", "Use `xpkg uninstall NAME`."},
	{"remove", "Use `xpkg uninstall NAME`."},
	{"repo", "Name a package by its registry: no list of repositories is needed. `xpkg versions REPOSITORY` lists the versions of a package."},
	{"resource", composes},
	{"resource trace", "Use `xpkg tree` for packages, and the Crossplane CLI for composite resources."},
	{"resource validate", "Use `xpkg validate RESOURCES --package EXTENSION`."},
	{"rm", "Use `xpkg uninstall NAME`."},
	{"rollout", "Use `xpkg describe NAME`, `xpkg history NAME` or `xpkg rollback NAME`."},
	{"rollout history", "Use `xpkg history NAME`."},
	{"rollout pause", "Use `kubectl annotate provider.pkg NAME crossplane.io/paused=true`."},
	{"rollout restart", "Use `kubectl rollout restart deployment --namespace crossplane-system`."},
	{"rollout resume", "Use `kubectl annotate provider.pkg NAME crossplane.io/paused-`."},
	{"rollout status", "Use `xpkg describe NAME`, or --wait of the command."},
	{"rollout undo", "Use `xpkg rollback NAME`."},
	{"run", "Use `xpkg up`, which runs packages on this machine."},
	{"template", "Use `xpkg plan install PACKAGE`, which shows the objects, or `xpkg extract PACKAGE`."},
	{"top", "Use `kubectl top pods --namespace crossplane-system`."},
	{"trace", "Use `xpkg tree` for packages, and the Crossplane CLI for composite resources."},
	{"unpublish", "Use `xpkg registry yank PACKAGE`, or `xpkg registry delete PACKAGE`."},
	{"uxp", "Use `xpkg bootstrap --apply`."},
	{"vendor", "Use `xpkg bundle save`."},
	{"view", "Use `xpkg inspect PACKAGE`."},
	{"wait", "Use --wait of the command, or `xpkg list --watch`."},
	{"xr", composes},
	{"xrd", composes},
	{"xrd convert", "Use the Crossplane CLI to convert an XRD to CRDs."},
	{"xrd generate", "Write the XRD, and check it with `xpkg lint`."},
	{"yank", "Use `xpkg registry yank PACKAGE`."},
}

// replacedFlags are flags of other tools that a command does not have, and an imperative sentence with the replacement.
// The empty command stands for every command.
var replacedFlags = map[[2]string]string{
	{"", "--all-namespaces"}:                   "Omit the flag: packages are not in a namespace.",
	{"", "--cleanup-on-fail"}:                  "Use --atomic.",
	{"", "--config"}:                           "Set the variable XPKG_CONFIG to the file: `xpkg config view` shows the result.",
	{"", "--create-namespace"}:                 "Omit the flag: packages are not in a namespace.",
	{"", "--debug"}:                            "Use --verbose.",
	{"", "--generate-name"}:                    "Omit the flag: the name is derived from the repository.",
	{"", "--json"}:                             "Use --output json.",
	{"", "--kube-context"}:                     "Use --context.",
	{"", "--namespace"}:                        "Omit the flag: packages are not in a namespace.",
	{"", "--reuse-values"}:                     "Omit the flag: a package keeps its settings.",
	{"", "--rollback-on-failure"}:              "Use --atomic.",
	{"", "--set"}:                              runtimeSettings,
	{"", "--set-file"}:                         runtimeSettings,
	{"", "--set-string"}:                       runtimeSettings,
	{"", "--timeout"}:                          "Use --wait DURATION, which waits and ends after this time.",
	{"", "--values"}:                           runtimeSettings,
	{"", "-A"}:                                 "Omit the flag: packages are not in a namespace.",
	{"", "-n"}:                                 "Omit the flag: packages are not in a namespace.",
	{"apply", "-f"}:                            "Use `xpkg install PACKAGE` for a package, and `kubectl apply -f FILE` for objects. `xpkg apply` carries out a plan.",
	{"diff", "-f"}:                             "Use `xpkg plan update NAME`, or `xpkg plan install PACKAGE`.",
	{"extract", "--from-daemon"}:               "Save the image with `docker save IMAGE -o image.tar`, and run `xpkg extract image.tar`.",
	{"history", "--max"}:                       "Omit the flag: all revisions that exist are shown.",
	{"init", "--ref-name"}:                     "Omit the flag: the templates are part of xpkg.",
	{"init", "--run-init-script"}:              "Omit the flag: the templates are part of xpkg.",
	{"init", "-b"}:                             "Omit the flag: the templates are part of xpkg.",
	{"init", "-r"}:                             "Omit the flag: the templates are part of xpkg.",
	{"install", "--devel"}:                     "Write the version after the reference, as in `xpkg install ghcr.io/acme/boats:v1.0.0-rc.1`.",
	{"install", "--frozen"}:                    "Use `xpkg install --lock FILE`.",
	{"install", "--locked"}:                    "Use `xpkg install --lock FILE`.",
	{"install", "--version"}:                   "Write the version after the reference, as in `xpkg install ghcr.io/acme/boats:v1.0.0`.",
	{"install", "-f"}:                          runtimeSettings,
	{"install", "-g"}:                          "Omit the flag: the name is derived from the repository.",
	{"list", "--field-selector"}:               "Use --selector KEY=VALUE, which selects packages by their labels.",
	{"list", "--filter"}:                       "Use --selector KEY=VALUE, which selects packages by their labels.",
	{"list", "--short"}:                        "Use --output name.",
	{"list", "--show-labels"}:                  "Use --output yaml.",
	{"list", "--sort-by"}:                      "Omit the flag: packages are sorted by their kinds and names.",
	{"login", "--password"}:                    "Use --password-stdin: other users of the machine can read the arguments of a command.",
	{"login", "--token"}:                       "Pass the token with --username and --password-stdin.",
	{"login", "-p"}:                            "Use --password-stdin: other users of the machine can read the arguments of a command.",
	{"login", "-t"}:                            "Pass the token with --username and --password-stdin.",
	{"logs", "--container"}:                    "Omit the flag: a runtime has one container.",
	{"logs", "--previous"}:                     "Name the former revision in place of the package: `xpkg history NAME` lists the revisions.",
	{"logs", "--since"}:                        "Use --tail N.",
	{"logs", "-c"}:                             "Omit the flag: a runtime has one container.",
	{"logs", "-p"}:                             "Name the former revision in place of the package: `xpkg history NAME` lists the revisions.",
	{"render", "--crossplane-binary"}:          ownPipeline,
	{"render", "--crossplane-docker-network"}:  ownPipeline,
	{"render", "--crossplane-image"}:           ownPipeline,
	{"render", "--crossplane-version"}:         ownPipeline,
	{"render", "--max-concurrency"}:            "Omit the flag: functions run from the images of their packages, and none is built.",
	{"render", "--project-file"}:               "Name the folder of the package with --package.",
	{"render", "-f"}:                           "Name the folder of the package with --package.",
	{"status", "--as"}:                         readsMachine,
	{"status", "--context"}:                    readsMachine,
	{"status", "--kubeconfig"}:                 readsMachine,
	{"sync", "--frozen"}:                       "Omit the flag: `xpkg sync` installs exactly the versions of the lock file.",
	{"sync", "--locked"}:                       "Omit the flag: `xpkg sync` installs exactly the versions of the lock file.",
	{"tree", "--depth"}:                        "Omit the flag: `xpkg tree NAME` shows one package with its dependencies.",
	{"tree", "--invert"}:                       "Use `xpkg why NAME`, which shows the packages that require a package.",
	{"tree", "-i"}:                             "Use `xpkg why NAME`, which shows the packages that require a package.",
	{"uninstall", "--all"}:                     "Name the packages, or use `xpkg sync --lock FILE --prune`.",
	{"uninstall", "--force"}:                   "Use --yes. Custom resources that block the deletion have finalizers: see `xpkg describe NAME`.",
	{"uninstall", "--keep-history"}:            "Omit the flag: the revisions of a package are deleted with it.",
	{"update", "--package"}:                    "Name the package without the flag, as in `xpkg update boats`.",
	{"update", "-f"}:                           runtimeSettings,
	{"update", "-p"}:                           "Name the package without the flag, as in `xpkg update boats`.",
	{"validate", "--clean-cache"}:              "Omit the flag: content is verified by its digest. `xpkg cache prune` empties the package cache.",
	{"validate", "--crossplane-image"}:         "Omit the flag: resources of Crossplane itself are not checked.",
	{"validate", "--error-on-missing-schemas"}: "Omit the flag: a resource of an unknown kind is an error without --allow-unknown-kinds.",
	{"validate", "--skip-success-results"}:     "Omit the flag: only problems are printed.",
	{"validate", "--update-cache"}:             "Omit the flag: each command resolves tags again.",
	{"version", "--client"}:                    "Omit the flag: `xpkg version` contacts no server without --server.",
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
	{"", "--dry-run: bool value", "Write --dry-run without a value.", nil},
	{"", "--wait: expected duration", "Write the time after the flag, as in --wait 5m.", nil},
	{"cache clean", unexpectedArgument, "Use `xpkg cache prune`.", nil},
	{"cache dir", unexpectedArgument, "Use `xpkg config view`, which shows the folder of the package cache.", nil},
	{"config current-context", unexpectedArgument, "Use `kubectl config current-context`.", nil},
	{"config get-contexts", unexpectedArgument, "Use `kubectl config get-contexts`.", nil},
	{"config set", unexpectedArgument, "Edit the configuration file, which `xpkg config view` names.", nil},
	{"config use-context", unexpectedArgument, "Pass --context to the command, or run `kubectl config use-context CONTEXT`.", nil},
	{"init", "expected \"<kind> <name>\"", "Write the kind and the name, as in `xpkg init provider provider-boats`.", nil},
	{"init", "is not provider, configuration, function or project", "Write the kind before the name, as in `xpkg init function NAME`.", nil},
	{"install", "is not provider, configuration or function", "Write the kind or the reference first, as in `xpkg install ghcr.io/acme/boats:v1.0.0 boats` or `xpkg install provider ghcr.io/acme/boats:v1.0.0 boats`.", nil},
	{"list", unexpectedArgument, "Use `xpkg describe NAME` for one package, and `xpkg list` for all.", nil},
	{"ls", unexpectedArgument, "Use `xpkg describe NAME` for one package, and `xpkg list` for all.", nil},
	{"registry login", unexpectedArgument, "Use `xpkg login HOST`.", nil},
	{"registry logout", unexpectedArgument, "Use `xpkg logout HOST`.", nil},
	{"show", unexpectedArgument, "Use `xpkg show FIRST --field SECOND`.", isField},
	{"show", unexpectedArgument, "Use `xpkg inspect PACKAGE`.", nil},
	{"status", unexpectedArgument, "Use `xpkg describe NAME`.", nil},
	{"sync", "missing flags: --lock", "Name the lock file, as in `xpkg sync --lock xpkg.lock`.", nil},
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

// isField reports whether arguments are a kind and the path of a field, as of `kubectl explain`. The first argument of
// `helm show` is a part of a chart.
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
	locks           = "Use `xpkg resolve PACKAGE --lock FILE`, which writes the versions and digests of a package and its dependencies."
	runtimeSettings = "Use --runtime-config NAME for the settings of a runtime."
	ownPipeline     = "Omit the flag: xpkg runs the functions itself, without Crossplane and Docker."
	readsMachine    = "Omit the flag: `xpkg status` reads the files and processes of this machine, and contacts a control plane of `xpkg up` as its owner."
	composes        = "Use the Crossplane CLI: xpkg manages packages, and Crossplane composes resources."
)

// replaced returns the usage error of a command of another tool, or nil.
func replaced(program string, args []string) error {
	found, ok := replacementOf(args)
	if !ok {
		return nil
	}
	return terminal.ErrUsage.New(nil, "%s has no command %s", program, found.command).
		WithDo("%s", namedAs(program, found.fix))
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

// replacementAlike returns the replacement of the command of another tool that a misspelled word resembles most.
func replacementAlike(word string) (found replacement, ok bool) {
	var words []string
	for _, r := range replacements {
		words = append(words, r.command)
	}
	if similar := spelling.Typo(word, words); len(similar) > 0 {
		return replacementOf(strings.Fields(similar[0]))
	}
	return replacement{}, false
}

// namedAs returns a sentence with the commands of xpkg under the name of the program.
func namedAs(program, text string) string { return strings.ReplaceAll(text, "`xpkg ", "`"+program+" ") }
