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
			{"xpkg build", ""}, {"xpkg build --package-root package --package-file boats.xpkg", ""},
			{"xpkg build -f package -e examples --ignore generated/*", ""},
			{"xpkg build --embed-runtime-image image:v1", ""}, {"xpkg build --embed-runtime-image-tarball image.tar", ""},
			{"xpkg push " + boats, ""}, {"xpkg push -f boats.xpkg,boats-arm.xpkg " + boats, ""},
			{"xpkg push --insecure-skip-tls-verify " + boats, ""},
			{"xpkg push -a org.opencontainers.image.source=https://example.org " + boats, ""},
			{"xpkg install provider " + boats, ""}, {"xpkg install function " + boats + " boats --wait 1m", ""},
			{"xpkg install provider " + boats + " boats -m -r 3 -w 5m", ""},
			{"xpkg install provider " + boats +
				" --runtime-config boats --manual-activation --revision-history-limit 3 --package-pull-secrets pull --skip-dependency-resolution",
				""},
			{"xpkg update provider " + boats, ""}, {"xpkg update provider " + boats + " boats", ""},
			{"xpkg init boats function-template-go", "init function boats"},
			{"xpkg init boats function-template-go -d boats -b main -r", "init function boats"},
			{"beta xpkg init boats function-template-go", "init function boats"},
			{"xpkg init function boats -b main", "init function boats"}, {"xpkg batch", "push -f boats.xpkg " + boats},
			{"xpkg batch --fam-repo ghcr.io/acme --build-only", "push -f boats.xpkg " + boats},
			{"xpkg append " + boats + " --extensions-root extensions", ""},
			{"alpha xpkg append " + boats + " --extensions-root extensions", ""},
			{"xpkg extract " + boats + " -o package.yaml", ""}, {"xpkg extract --from-daemon image:v1", "extract image.tar"},
			{"xpkg extract --from-xpkg boats.xpkg", ""},
			{"xpkg get-crds " + boats, "extract " + boats},
			{"xpkg get-crds extensions.yaml --output-dir crds --json-schema", "extract " + boats},
			{"xpkg login -u ann", ""}, {"xpkg login -u ann -p secret", "login -u ann --password-stdin"},
			{"xpkg login -t token", "login -u ann --password-stdin"}, {"xpkg logout", ""},
			{"--verbose xpkg build", ""}, {"xpkg build --verbose", ""},
			{"render xr.yaml composition.yaml functions.yaml", ""},
			{"render xr.yaml composition.yaml functions.yaml -o observed.yaml -e required.yaml -x -r -c", ""},
			{"render xr.yaml composition.yaml functions.yaml --extra-resources extra.yaml --context-values key=1 --context-files key=context.json --function-credentials secrets.yaml --xrd xrd.yaml --timeout 2m", ""},
			{"composition render xr.yaml composition.yaml functions.yaml", ""},
			{"alpha render xr.yaml composition.yaml functions.yaml", ""},
			{"beta render xr.yaml composition.yaml functions.yaml", ""},
			{"alpha render xr xr.yaml composition.yaml functions.yaml", ""},
			{"render xr.yaml composition.yaml functions.yaml --crossplane-version v2.0.0", "render xr.yaml composition.yaml functions.yaml"},
			{
				"render xr.yaml composition.yaml functions.yaml --crossplane-binary crossplane",
				"render xr.yaml composition.yaml functions.yaml",
			}, {"render xr.yaml composition.yaml functions.yaml --max-concurrency 4",
				"render xr.yaml composition.yaml functions.yaml"},
			{"alpha render op operation.yaml functions.yaml", "kubectl"},
			{"operation render operation.yaml functions.yaml", "kubectl"},
			{"composition generate xrd.yaml", "init configuration boats"},
			{"composition convert composition-environment composition.yaml", "kubectl"},
			{"xr generate claim.yaml", "kubectl"}, {"xr patch xr.yaml --xrd xrd.yaml", "kubectl"},
			{"xrd convert xrd.yaml", "kubectl"}, {"xrd generate xr.yaml", "lint"},
			{"validate extension.yaml resources.yaml", ""},
			{"validate extension.yaml resources.yaml --error-on-missing-schemas", "validate extension.yaml resources.yaml"},
			{"validate extension.yaml resources.yaml --skip-success-results", "validate extension.yaml resources.yaml"},
			{"validate extension.yaml resources.yaml --crossplane-image image", "validate extension.yaml resources.yaml"},
			{"validate extension.yaml resources.yaml --clean-cache", "validate extension.yaml resources.yaml"},
			{"validate extension.yaml resources.yaml --update-cache", "validate extension.yaml resources.yaml"},
			{"beta validate extension.yaml resources.yaml", "validate resources.yaml --package extension.yaml"}, {
				"beta validate extension.yaml resources.yaml --cache-dir cache --skip-success-results",
				"validate resources.yaml --package extension.yaml",
			}, {"resource validate extension.yaml resources.yaml", "validate resources.yaml --package extension.yaml"},
			{"beta trace provider.pkg boats", "tree"},
			{"trace provider.pkg boats --show-package-dependencies all -o wide", "tree"},
			{"resource trace provider.pkg boats -w", "tree"},
			{"beta convert composition-environment composition.yaml", "kubectl"}, {"beta top", "kubectl"},
			{"cluster top -s", "kubectl"}, {"config view", ""}, {"config set features.enableAlpha true", "config view"},
			{"completions", "completion bash"}, {"version", ""}, {"version --client", "version"}, {"help", ""},
			{"--config config.yaml xpkg build", "config view"}, {"beta describe provider boats", "kubectl"},
			{"composition diff xr.yaml", "kubectl"}, {"resource get boats", "kubectl"}, {"cluster info", "doctor"},
			{"render xr.yaml composition.yaml functions.yaml -s schemas.json", ""}, {
				"render xr.yaml composition.yaml functions.yaml --project-file crossplane-project.yaml",
				"render xr.yaml --package .",
			},
		}},
		{"up", "up", []toolCommand{
			{"xpkg build -f package", ""}, {"xpkg push " + boats, ""}, {"login ghcr.io", ""}, {"logout ghcr.io", ""},
			{"project build", "build"}, {"project init boats", "init project boats"}, {"project push", "push " + boats},
			{"project run", "up"}, {"project stop", "down"},
			{"dependency update-cache", "resolve " + boats + " --lock xpkg.lock"}, {"dependency clean-cache", "cache prune"},
			{"dependency add " + boats, ""}, {"dep add " + boats, "dependency add " + boats},
			{"function generate boats", "init function boats"}, {"xrd generate xr.yaml", "lint"},
			{"composition render xr.yaml composition.yaml functions.yaml", ""}, {"test run", ""},
			{"controlplane create boats", "up --detach"}, {"ctp list", "up --detach"}, {"ctx", "kubectl"},
			{"profile list", "config view"}, {"uxp install", "bootstrap --apply"},
		}},
		{"helm", "Helm", []toolCommand{
			{"install " + boats, ""}, {"install " + boats + " boats --atomic --wait 5m", ""},
			{"install " + boats + " --dry-run", ""}, {"install " + boats + " --timeout 5m", "install " + boats + " --wait 5m"},
			{"install boats " + boats, "install " + boats + " boats"},
			{"install " + boats + " --set a=b", "install " + boats + " --runtime-config boats"},
			{"install " + boats + " --version v1.0.0", "install " + boats},
			{"install " + boats + " --devel", "install " + boats}, {"install " + boats + " --generate-name", "install " + boats},
			{"install " + boats + " --wait", "install " + boats + " --wait 5m"},
			{"install " + boats + " --wait --timeout 5m", "install " + boats + " --wait 5m"},
			{"install " + boats + " --dry-run=server", "install " + boats + " --dry-run"},
			{"install " + boats + " --create-namespace", "install " + boats},
			{"install " + boats + " -f values.yaml", "install " + boats + " --runtime-config boats"},
			{"create boats", "init provider boats"}, {"test boats", ""}, {"plugin list", "kubectl"},
			{"search boats", ""},
			{"upgrade boats v2.0.0", ""}, {"upgrade --install " + boats, ""}, {"upgrade -i " + boats + " --atomic", ""},
			{"upgrade boats v2.0.0 --wait", "update boats v2.0.0 --wait 5m"},
			{"upgrade boats v2.0.0 --rollback-on-failure", "update boats v2.0.0 --atomic"},
			{"upgrade boats v2.0.0 --reuse-values", "update boats v2.0.0"},
			{"upgrade boats -f values.yaml", "update boats --runtime-config boats"},
			{"uninstall boats", ""}, {"uninstall boats rafts", ""}, {"delete boats", "uninstall boats"},
			{"uninstall boats --keep-history", "uninstall boats"}, {"uninstall boats --wait", "uninstall boats --wait 5m"},
			{"list", ""}, {"ls", ""}, {"list -A", "list"}, {"list -q", ""}, {"list -o json", ""},
			{"list --filter boats", "list --selector team=ships"}, {"list --short", "list --output name"},
			{"history boats", ""}, {"history boats --max 3", "history boats"}, {"rollback boats", ""}, {"rollback boats 3", ""},
			{"status boats", "describe boats"}, {"get manifest boats", "describe boats"}, {"get values boats", "describe boats"},
			{"get all boats", "describe boats"},
			{"show chart " + boats, "inspect " + boats}, {"show values " + boats, "inspect " + boats},
			{"show readme " + boats, "inspect " + boats}, {"pull " + boats, ""}, {"push boats.xpkg " + boats, ""},
			{"package boats", "build"}, {"lint package", ""}, {"template " + boats, "plan install " + boats},
			{"dependency update", ""}, {"dependency build", "resolve --lock xpkg.lock"},
			{"repo add acme https://example.com", "versions ghcr.io/acme/boats"}, {"repo update", "versions ghcr.io/acme/boats"},
			{"registry login ghcr.io", "login ghcr.io"}, {"registry logout ghcr.io", "logout ghcr.io"}, {"env", "config view"},
			{"verify boats.xpkg", "verify " + boats}, {"version", ""}, {"completion zsh", ""},
		}},
		{"kubectl", "kubectl", []toolCommand{
			{"get providers", "list"}, {"get pkg -A", "list"}, {"get provider boats -o yaml", "describe boats"},
			{"apply -f provider.yaml", "install " + boats}, {"create -f provider.yaml", "install " + boats},
			{"delete -f provider.yaml", "uninstall boats"}, {"diff -f provider.yaml", "plan update boats"},
			{"patch provider boats", "update boats --revision-history-limit 3"}, {"annotate provider boats a=b", "kubectl"},
			{"label provider boats a=b", "kubectl"}, {"api-resources", "search boats"}, {"cluster-info", "doctor"},
			{"config use-context prod", "kubectl"}, {"config get-contexts", "kubectl"}, {"config current-context", "kubectl"},
			{"describe provider boats", ""}, {"describe provider/boats", ""},
			{"delete provider boats", "uninstall provider boats"},
			{"logs boats -f --tail 20", ""}, {"logs provider/boats -f", ""}, {"logs boats --since 5m", "logs boats --tail 20"},
			{"logs boats --previous", "history boats"}, {"logs boats -c runtime", "logs boats"}, {"list -o wide", ""},
			{"list -o name", ""}, {"list -o yaml", ""}, {"list -o jsonpath={.items[*].metadata.name}", ""},
			{"list -l team=ships --no-headers", ""}, {"list -w", ""}, {"list --show-labels", "list --output yaml"},
			{"list --field-selector metadata.name=boats", "list --selector team=ships"},
			{"list --sort-by .metadata.name", "list"},
			{"list --as ann --as-group ships", ""}, {"status --as ann", "status"},
			{"list --context prod --kubeconfig config", ""}, {"--context prod list", ""},
			{"--kubeconfig config list -o wide", ""}, {"-n crossplane-system list", ""}, {"-o json list", ""},
			{"list provider", "describe boats"}, {"list boats", "describe boats"}, {"wait provider boats", "list --watch"},
			{"rollout status boats", "describe boats"}, {"rollout history boats", "history boats"},
			{"rollout undo boats", "rollback boats"}, {"rollout restart boats", "kubectl"}, {"rollout pause boats", "kubectl"},
			{"rollout resume boats", "kubectl"}, {"edit provider boats", "update boats --revision-history-limit 3"},
			{"explain Boat", "show Boat"}, {"explain Boat.spec.length", "show Boat"},
			{"show Boat spec.length", "show Boat --field spec.length"}, {"auth can-i", "doctor"}, {"top pods", "kubectl"},
			{"version", ""},
			{"approve boats rafts", ""}, {"completion fish", ""},
		}},
		{"cargo, uv, npm", "cargo, uv and npm", []toolCommand{
			{"new boats", "init provider boats"}, {"init", "init provider boats"}, {"init provider boats", ""},
			{"install", "install --lock xpkg.lock"}, {"add " + boats, "install " + boats}, {"remove boats", "uninstall boats"},
			{"rm boats", "uninstall boats"}, {"install " + boats, ""},
			{"install " + boats + " --locked", "install --lock xpkg.lock"},
			{"update", "update --all"}, {"update --dry-run", "update --all --dry-run"}, {"update -p boats", "update boats"},
			{"update boats", ""}, {"update boats@v2.0.0 rafts", ""}, {"upgrade boats", ""}, {"outdated", ""},
			{"outdated boats", ""}, {"tree", ""}, {"tree --invert", "why boats"}, {"tree -i boats", "why boats"},
			{"tree --depth 1", "tree boats"}, {"why boats", ""}, {"audit", "outdated"},
			{"export", "resolve " + boats + " --manifests"}, {"lock", "resolve --lock xpkg.lock"}, {"sync --lock xpkg.lock", ""},
			{"sync", "sync --lock xpkg.lock"}, {"sync --lock xpkg.lock --frozen", "sync --lock xpkg.lock"},
			{"lock --upgrade", "resolve --lock xpkg.lock --upgrade"}, {"ci", "sync --lock xpkg.lock --prune"},
			{"build", ""}, {"check", ""}, {"test", ""}, {"run", "up"}, {"publish", "push " + boats},
			{"yank boats@v1.0.0", "registry yank " + boats}, {"unpublish boats", "registry yank " + boats},
			{"deprecate boats", "registry deprecate " + boats}, {"pack", "build"}, {"search boats", ""},
			{"info boats", "inspect " + boats}, {"view boats", "inspect " + boats}, {"prune", "autoremove"},
			{"purge boats", "uninstall boats"}, {"pip install boats", "install " + boats}, {"cache clean", "cache prune"},
			{"cache dir", "config view"}, {"list --json", "list --output json"}, {"fetch", "pull " + boats},
			{"vendor", "bundle save xpkg.lock -o packages.tar"}, {"clean", "cache prune"},
			{"freeze", "resolve --lock xpkg.lock"},
			{"login ghcr.io", ""}, {"logout ghcr.io", ""}, {"--version", ""}, {"help install", ""}, {"--color never list", ""},
			{"-q list", ""}, {"list --quiet", ""},
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
			case strings.HasPrefix(c.theirs, "xpkg update "):
				ours = "works as it is on a terminal; scripts add `--yes`"
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
	return replacedUse(unexpectedArgument, words)
}
