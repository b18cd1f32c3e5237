package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// toolCommand is a command line of another tool, without the name of the tool, and the command of xpkg.
type toolCommand struct{ theirs, ours string }

// tool is a command-line tool whose commands users type.
type tool struct {
	name, title string
	// commands have an empty second word if the command line works as it is.
	commands []toolCommand
}

// otherTools are the command lines that users of other tools type. A test checks each: it works, or its error names the
// replacement.
func otherTools() []tool {
	const boats = "ghcr.io/acme/boats:v1.0.0"
	return []tool{
		{"crossplane", "Crossplane CLI", []toolCommand{
			{"xpkg build", ""}, {"xpkg build --package-root package --package-file boats.xpkg", ""}, {"xpkg build -f package -e examples --ignore generated/*", ""},
			{"xpkg build --embed-runtime-image image:v1", ""}, {"xpkg build --embed-runtime-image-tarball image.tar", ""},
			{"xpkg push " + boats, ""}, {"xpkg push -f boats.xpkg,boats-arm.xpkg " + boats, ""}, {"xpkg push --insecure-skip-tls-verify " + boats, ""},
			{"xpkg install provider " + boats, ""}, {"xpkg install function " + boats + " boats --wait 1m", ""},
			{"xpkg install provider " + boats + " --runtime-config boats --manual-activation --revision-history-limit 3 --package-pull-secrets pull --skip-dependency-resolution", ""},
			{"xpkg update provider " + boats, ""}, {"xpkg update provider " + boats + " boats", ""},
			{"xpkg init boats function-template-go", "init function boats"}, {"xpkg batch", "push -f boats.xpkg " + boats}, {"xpkg append " + boats + " --extensions-root extensions", ""},
			{"xpkg extract " + boats + " -o package.yaml", ""}, {"xpkg extract --from-daemon image:v1", "extract image.tar"}, {"xpkg extract --from-xpkg boats.xpkg", ""},
			{"xpkg get-crds " + boats, "extract " + boats},
			{"xpkg login -u ann", ""}, {"xpkg login -u ann -p secret", "login -u ann --password-stdin"}, {"xpkg login -t token", "login -u ann --password-stdin"}, {"xpkg logout", ""},
			{"--verbose xpkg build", ""}, {"xpkg build --verbose", ""},
			{"render xr.yaml composition.yaml functions.yaml", ""}, {"render xr.yaml composition.yaml functions.yaml -o observed.yaml -e required.yaml -x -r -c", ""}, {"render xr.yaml composition.yaml functions.yaml --extra-resources extra.yaml --context-values key=1 --context-files key=context.json --function-credentials secrets.yaml --xrd xrd.yaml --timeout 2m", ""}, {"composition render xr.yaml composition.yaml functions.yaml", ""}, {"alpha render xr.yaml composition.yaml functions.yaml", ""}, {"beta render xr.yaml composition.yaml functions.yaml", ""}, {"beta validate extension.yaml resources.yaml", "validate resources.yaml --package extension.yaml"},
			{"beta trace provider.pkg boats", "tree"}, {"beta convert composition-environment composition.yaml", "kubectl"}, {"beta top", "kubectl"},
			{"completions", "completion bash"}, {"version", ""}, {"version --client", "version"}, {"help", ""},
		}},
		{"up", "up", []toolCommand{
			{"xpkg build -f package", ""}, {"xpkg push " + boats, ""}, {"login ghcr.io", ""}, {"logout ghcr.io", ""},
			{"project build", "build"}, {"project init", "build"}, {"project run", "up"}, {"dependency add provider " + boats, "resolve " + boats + " --lock xpkg.lock"}, {"dep add provider", "resolve " + boats + " --lock xpkg.lock"},
			{"function generate boats", "init function boats"}, {"xrd generate xr.yaml", "lint"}, {"composition render xr.yaml composition.yaml functions.yaml", ""}, {"test run", "validate"},
			{"controlplane create boats", "up --detach"}, {"ctp list", "up --detach"}, {"ctx", "kubectl"}, {"profile list", "config view"}, {"uxp install", "bootstrap --apply"},
		}},
		{"helm", "Helm", []toolCommand{
			{"install " + boats, ""}, {"install " + boats + " boats --atomic --wait 5m", ""}, {"install " + boats + " --dry-run", ""}, {"install " + boats + " --timeout 5m", "install " + boats + " --wait 5m"},
			{"install boats " + boats, "install " + boats + " boats"}, {"install " + boats + " --set a=b", "install " + boats + " --runtime-config boats"}, {"install " + boats + " --version v1.0.0", "install " + boats},
			{"upgrade boats v2.0.0", ""}, {"upgrade --install " + boats, ""}, {"upgrade -i " + boats + " --atomic", ""},
			{"uninstall boats", ""}, {"uninstall boats rafts", ""}, {"delete boats", "uninstall boats"}, {"list", ""}, {"ls", ""}, {"list -A", "list"}, {"list -q", ""}, {"list -o json", ""},
			{"history boats", ""}, {"rollback boats", ""}, {"rollback boats 3", ""}, {"status boats", "describe boats"}, {"get manifest boats", "describe boats"},
			{"show chart " + boats, "inspect " + boats}, {"pull " + boats, ""}, {"push boats.xpkg " + boats, ""}, {"package boats", "build"}, {"lint package", ""}, {"template " + boats, "plan install " + boats},
			{"dependency update", "resolve --lock xpkg.lock"}, {"repo add acme https://example.com", "versions ghcr.io/acme/boats"}, {"registry login ghcr.io", "login ghcr.io"}, {"env", "config view"}, {"verify boats.xpkg", "cache verify"}, {"version", ""}, {"completion zsh", ""},
		}},
		{"kubectl", "kubectl", []toolCommand{
			{"get providers", "list"}, {"describe provider boats", ""}, {"describe provider/boats", ""}, {"delete provider boats", "uninstall provider boats"},
			{"logs boats -f --tail 20", ""}, {"list -o wide", ""}, {"list -o name", ""}, {"list -o yaml", ""}, {"list -o jsonpath={.items[*].metadata.name}", ""}, {"list -l team=ships --no-headers", ""}, {"list -w", ""},
			{"list --as ann --as-group ships", ""}, {"list --context prod --kubeconfig config", ""}, {"--context prod list", ""}, {"--kubeconfig config list -o wide", ""}, {"-n crossplane-system list", ""}, {"-o json list", ""}, {"list provider", "describe boats"}, {"list boats", "describe boats"}, {"wait provider boats", "list --watch"}, {"rollout status boats", "describe boats"}, {"rollout history boats", "history boats"},
			{"rollout undo boats", "rollback boats"}, {"edit provider boats", "update boats --revision-history-limit 3"}, {"explain Boat", "show Boat"}, {"auth can-i", "doctor"}, {"top pods", "kubectl"}, {"version", ""},
			{"approve boats rafts", ""}, {"completion fish", ""},
		}},
		{"cargo, uv, npm", "cargo, uv and npm", []toolCommand{
			{"new boats", "init provider boats"}, {"init provider boats", ""}, {"add " + boats, "install " + boats}, {"remove boats", "uninstall boats"}, {"rm boats", "uninstall boats"}, {"install " + boats, ""}, {"install " + boats + " --locked", "install --lock xpkg.lock"},
			{"update", "update --all"}, {"update boats", ""}, {"update boats@v2.0.0 rafts", ""}, {"upgrade boats", ""}, {"outdated", ""}, {"outdated boats", ""}, {"tree", ""}, {"why boats", ""}, {"lock", "resolve --lock xpkg.lock"}, {"sync --lock xpkg.lock", ""}, {"ci", "sync --lock xpkg.lock --prune"},
			{"build", ""}, {"check", "lint"}, {"test", "validate"}, {"run", "up"}, {"publish", "push " + boats}, {"info boats", "inspect " + boats}, {"fetch", "pull " + boats}, {"vendor", "deps vendor --lock xpkg.lock --to packages"}, {"clean", "cache prune"}, {"freeze", "resolve --lock xpkg.lock"},
			{"login ghcr.io", ""}, {"logout ghcr.io", ""}, {"--version", ""}, {"help install", ""}, {"--color never list", ""}, {"-q list", ""}, {"list --quiet", ""},
		}},
	}
}

// OtherTools writes the table of commands of other tools.
func OtherTools(w io.Writer) error {
	fmt.Fprint(w, "<!-- Generated by `make generate`. Do not edit. -->\n\n# Commands of other tools\n\n",
		"What users of other tools type, and the command of xpkg. Every row is tested: a command in the left column works, or ends with a\n",
		"usage error that names the replacement. `kubectl crossplane` in place of `xpkg` works everywhere.\n")
	for _, t := range otherTools() {
		fmt.Fprintf(w, "\n## %s\n\n| %s | xpkg |\n|---|---|\n", t.title, t.name)
		for _, c := range t.commands {
			ours := "works as it is"
			switch {
			case c.ours == "kubectl":
				ours = cmp.Or(toolInCharge(c.theirs), "another tool remains in charge")
			case c.ours != "":
				ours = "`xpkg " + c.ours + "`"
			}
			if _, err := fmt.Fprintf(w, "| `%s` | %s |\n", cell(c.theirs), cell(ours)); err != nil {
				return err
			}
		}
	}
	return nil
}

// toolInCharge returns the sentence about a command that xpkg does not replace.
func toolInCharge(command string) string {
	words := strings.Fields(command)
	if r, ok := replacementOf(words); ok {
		return r.fix
	}
	return ""
}
