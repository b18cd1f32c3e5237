package cli

import (
	"strings"

	"github.com/alecthomas/kong"
)

// examples are typical command lines of each command, without the name of the program.
var examples = map[string][]string{
	"init": {
		"init provider provider-boats --module github.com/acme/provider-boats", "init configuration boats -d package",
		"init project boats --repository ghcr.io/acme/boats",
	},
	"build": {
		"build -f package -o boats.xpkg", "build -f package --embed-runtime-image-tarball image.tar -o boats.xpkg",
		"build -f package --embed-go-program ./cmd/boats --platform linux/arm64",
		"build fleets --repository ghcr.io/acme/fleets",
	},
	"lint":              {"lint package", "lint ghcr.io/acme/boats:v1.0.0 --strict"},
	"dependency add":    {"dependency add ghcr.io/acme/boats", "dependency add ghcr.io/acme/boats@>=v1 --folder fleet"},
	"dependency remove": {"dependency remove ghcr.io/acme/boats"},
	"dependency update": {"dependency update", "dependency update ghcr.io/acme/boats"},
	"check":             {"check", "check fleets --strict", "check fleets --sarif --no-render"},
	"validate": {
		"validate boats.yaml --package ghcr.io/acme/boats:v1.0.0", "validate manifests --lock xpkg.lock",
	},
	"render": {
		"render xr.yaml", "render xr.yaml composition.yaml functions.yaml -o observed.yaml",
		"render xr.yaml --package ghcr.io/acme/fleets:v1.0.0 --validate",
	},
	"test": {"test", "test fleets --update", "test fleets/tests/defaults.yaml --coverage --junit junit.xml"},
	"push": {
		"push -f boats.xpkg ghcr.io/acme/boats:v1.0.0",
		"push -f boats.xpkg ghcr.io/acme/boats:v1.0.0 --sign-key cosign.key",
	},
	"convert": {
		"convert ghcr.io/acme/stack-boats:v0.3.0 -o boats.xpkg", "convert stack-boats -o boats --report json",
	},
	"append": {"append ghcr.io/acme/boats:v1.0.0 --extensions-root extensions"},
	"pull":   {"pull ghcr.io/acme/boats:v1.0.0 -o boats.xpkg"},
	"copy": {
		"copy ghcr.io/acme/boats:v1.0.0 registry.example.com/boats:v1", "copy boats.xpkg oci:layout",
	},
	"sign":   {"sign ghcr.io/acme/boats:v1.0.0 --key cosign.key"},
	"attest": {"attest ghcr.io/acme/boats:v1 --key a.key --predicate s.json --type spdx"},
	"verify": {
		"verify ghcr.io/acme/boats:v1.0.0 --key cosign.pub", "verify", "verify --image-config policy.yaml -o json",
	},
	"inspect": {"inspect ghcr.io/acme/boats:v1.0.0 --objects", "inspect boats.xpkg -o json"},
	"extract": {"extract boats.xpkg -o package.yaml"},
	"diff": {
		"diff ghcr.io/acme/boats:v1.0.0 ghcr.io/acme/boats:v2.0.0",
		"diff boats-v1.xpkg boats-v2.xpkg --fail-on breaking -o markdown",
	},
	"login":  {"login ghcr.io --username alice"},
	"logout": {"logout ghcr.io"},
	"registry serve": {
		"registry serve --dir registry", "registry serve --dir front --backend ghcr.io --listen :8443",
	},
	"registry export": {
		"registry export site --from packages", "registry export site ghcr.io/acme/boats:v1.0.0",
		"registry export site --index registry.example.org/index:main",
	},
	"registry token create": {"registry token create --dir registry --repository acme/* --action read"},
	"registry token list":   {"registry token list --dir registry"},
	"registry token revoke": {"registry token revoke 1a2b3c4d5e6f --dir registry"},
	"registry prune": {
		"registry prune ghcr.io/acme/index:main --lock xpkg.lock", "registry prune ghcr.io/acme/index:main --age 720h --yes",
	},
	"registry mirror": {
		"registry mirror ghcr.io/acme/index:main --to mirror.test/packages",
		"registry mirror ghcr.io/acme/index:main --to mirror.test --kinds Boat",
	},
	"registry yank": {
		"registry yank ghcr.io/acme/boats:v1.1.0 --reason broken --message crash",
		"registry yank ghcr.io/acme/boats:v1.1.0 --replaced-by v1.1.1",
	},
	"registry unyank":    {"registry unyank ghcr.io/acme/boats:v1.1.0"},
	"registry deprecate": {"registry deprecate ghcr.io/acme/boats:v1.0.0 --reason renamed"},
	"registry delete":    {"registry delete ghcr.io/acme/boats:v1.1.0 --reason licence"},
	"resolve": {
		"resolve --lock xpkg.lock", "resolve ghcr.io/acme/boats:v1.0.0 -o json",
		"resolve --kind Boat.sea.example.org --lock xpkg.lock",
	},
	"bundle save": {
		"bundle save xpkg.lock -o packages.tar", "bundle save xpkg.lock --since packages.tar -o update.tar",
		"bundle save ghcr.io/acme/boats:v1.0.0 -o boats.tar",
	},
	"bundle load": {"bundle load packages.tar registry.example.com/mirror"},
	"install": {
		"install provider ghcr.io/acme/boats:v1.0.0 boats --wait 2m", "install --lock xpkg.lock --wait 5m",
		"install --kind Boat.sea.example.org/v1",
	},
	"kinds":      {"kinds", "kinds boats --all"},
	"activate":   {"activate boats.sea.example.org --wait 2m"},
	"deactivate": {"deactivate boats.sea.example.org --dry-run"},
	"update": {
		"update boats v2.0.0 --wait 2m", "update boats rafts@v2.1.0 --atomic", "update --all --wait 5m",
		"update -l team=ships --wait 5m", "update provider/boats --revision-history-limit 3",
	},
	"sync": {"sync --lock xpkg.lock --prune --dry-run", "sync --lock xpkg.lock --prune --yes --wait 5m"},
	"uninstall": {
		"uninstall provider boats --wait 2m", "uninstall boats provider/rafts", "uninstall -l team=ships --dry-run",
	},
	"autoremove": {"autoremove --dry-run"},
	"approve":    {"approve boats", "approve boats rafts --yes --wait 2m", "approve transaction xpkg-k3v7qaxw2d"},
	"plan install": {
		"plan install provider ghcr.io/acme/boats:v1.0.0 boats", "plan install --kind Boat.sea.example.org/v1",
	},
	"plan update":     {"plan update boats v2.0.0 --out plan.json", "plan update boats -o markdown"},
	"plan uninstall":  {"plan uninstall provider boats"},
	"plan rollback":   {"plan rollback boats", "plan rollback boats 3 --out plan.json"},
	"plan autoremove": {"plan autoremove --out plans.json"},
	"plan sync": {
		"plan sync --lock xpkg.lock --prune --out plans.json", "plan sync --lock xpkg.lock --transaction",
	},
	"apply":    {"apply plan.json --wait 2m"},
	"history":  {"history", "history 12", "history boats"},
	"rollback": {"rollback boats --wait 2m", "rollback provider boats --to 3 --dry-run", "rollback --to-generation 12"},
	"describe": {
		"describe boats", "describe provider boats -o json", "describe boats rafts", "describe -l team=ships",
	},
	"man":      {"man man1"},
	"list":     {"list -o wide", "list -l team=ships -o name", "list --watch"},
	"tree":     {"tree", "tree provider/boats", "tree -l team=ships", "tree --lock xpkg.lock"},
	"why":      {"why boats", "why boats --lock xpkg.lock"},
	"versions": {"versions ghcr.io/acme/boats", "versions ghcr.io/acme/boats --all"},
	"sbom":     {"sbom", "sbom --lock xpkg.lock -o spdx", "sbom ghcr.io/acme/boats:v1.0.0"},
	"outdated": {
		"outdated", "outdated provider/boats", "outdated --lock xpkg.lock --all", "outdated -l team=ships",
	},
	"cache ls":     {"cache ls"},
	"cache add":    {"cache add boats.xpkg --as ghcr.io/acme/boats:v1.0.0"},
	"cache verify": {"cache verify"},
	"cache prune":  {"cache prune --older-than 720h --dry-run"},
	"up":           {"up --detach", "up --build", "up --data-dir plane --port 0 --registry-port 0"},
	"dev":          {"dev", "dev package --embed-go-program ./cmd/boats"},
	"down":         {"down"},
	"status":       {"status"},
	"logs":         {"logs provider/boats --follow --tail 20"},
	"manager":      {"manager --kubeconfig admin.conf", "manager --leader-election --metrics-address :8080"},
	"config view":  {"config view", "config view -o wide"},
	"completion":   {"completion bash"},
	"version":      {"version", "version --server -o json"},
	"doctor":       {"doctor", "doctor --namespace crossplane-system -o json"},
	"bootstrap":    {"bootstrap --image registry.example.org/xpkg:v0.1.0 --apply --wait 2m"},
	"migrate from-core": {
		"migrate from-core --dry-run", "migrate from-core --image registry.example.org/xpkg:v0.1.0 --yes",
	},
	"migrate to-core": {"migrate to-core --dry-run", "migrate to-core --yes"},

	"migrate first-generation": {
		"migrate first-generation --dry-run", "migrate first-generation --replace packages.txt --yes",
	},

	"search": {
		"search bucket", "search security group --type Provider -o wide", "search --kind Bucket --group '*.aws.*'",
	},
	"index build": {
		"index build ghcr.io/acme/index:main --list repositories.txt",
		"index build registry.test/index:main --registry registry.test --texts",
	},
	"index update": {"index update ghcr.io/acme/index:main"},
	"index verify": {"index verify ghcr.io/acme/index:main"},
	"index show":   {"index show ghcr.io/acme/index:main -o json"},
	"show": {
		"show Bucket.s3.aws.upbound.io --field spec", "show ghcr.io/acme/boats@v1.0.0",
		"show Bucket.s3.aws.upbound.io --since -o json",
	},
}

// examplesOf returns the examples of a command as complete command lines.
func examplesOf(program string, command *kong.Node) []string {
	var lines []string
	for _, line := range examples[wordsOf(command)] {
		lines = append(lines, program+" "+line)
	}
	return lines
}

// wordsOf returns the words of a command, without aliases.
func wordsOf(command *kong.Node) string {
	if command.Parent == nil || command.Parent.Type == kong.ApplicationNode {
		return command.Name
	}
	return wordsOf(command.Parent) + " " + command.Name
}

// showExamples adds the examples of each command to its help.
func showExamples(app *kong.Application) {
	for _, command := range app.Leaves(true) {
		if lines := examplesOf(app.Name, command); len(lines) > 0 {
			// Indented lines are neither joined nor wrapped.
			command.Detail = "Examples:\n\n  " + strings.Join(lines, "\n  ")
		}
	}
}
