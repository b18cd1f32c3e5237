//go:build unix

package program_test

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// guide is a guide whose commands a test executes from top to bottom, in one folder.
type guide struct {
	// name is the name of the file in docs/guides, and of the file in testdata/guides with the files that its reader has.
	name string
	// replaced are texts of the guide and their values in the test.
	replaced map[string]string
	// exits are the exit codes of commands that do not end with 0.
	exits map[string]int
	// skipped are the commands that the test cannot execute, with the reason.
	skipped map[string]string
	// loose are the commands whose shown output is an example: only their exit code is checked.
	loose []string
}

// block matches the blocks of a document that show a terminal.
var block = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

// step is a command of a guide with the lines of its output that the guide shows.
type step struct {
	command string
	output  []string
}

// stepsOf returns the commands of a document in their order. A line with … stands for output that is not shown.
func stepsOf(document string) []step {
	var out []step
	for _, b := range block.FindAllStringSubmatch(document, -1) {
		for line := range strings.Lines(b[1]) {
			line = strings.TrimRight(line, "\n")
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				out = append(out, step{command: command})
			} else if len(out) > 0 && line != "" && line != "…" {
				last := &out[len(out)-1]
				last.output = append(last.output, line)
			}
		}
	}
	return out
}

// Each command of the guide works, in the order of the guide and in one folder, and prints what the guide shows.
func TestGuidesWorkFromTopToBottom(t *testing.T) {
	p := shared(t)
	for _, g := range []guide{
		{
			name:     "build-and-publish",
			replaced: map[string]string{"127.0.0.1:15000": p.Registry, "127.0.0.1:5055": p.Registry},
			exits:    map[string]int{"xpkg lint bad": 4, "xpkg validate boat.yaml": 4},
			skipped: map[string]string{
				"docker build":                      "there is no Docker daemon",
				"xpkg build -f package --embed-run": "its image is of the Docker daemon",
				"xpkg login ghcr.io":                "there is no network",
			},
			// The control plane of the test runs no runtimes.
			loose: []string{"xpkg install provider"},
		},
		{
			name: "upgrade",
			replaced: map[string]string{
				"--wait 2m": "--wait 2m --yes", "--wait 5m": "--wait 5m --yes", "update --all": "update --all --yes",
			},
			skipped: map[string]string{
				"kubectl patch providerrevision": "its revision is an example",
			},
			loose: []string{"xpkg update", "xpkg history", "xpkg migrate-storage", "xpkg rollback"},
		},
		{
			name:     "plan",
			replaced: map[string]string{"registry.example.com": p.Registry, "plan-3f786850e387.json": "plan-*.json"},
			exits:    map[string]int{"xpkg plan update": 2, "xpkg apply plan.json": 9},
			loose:    []string{"xpkg plan update provider-boats v2.0.0 --out", "xpkg apply"},
		},
		{
			name: "package-cache",
			replaced: map[string]string{
				"/var/lib/xpkg-cache": "cache", "xpkg cache add": "xpkg cache add --cache-dir cache", "xpkg cache ls": "xpkg cache ls --cache-dir cache",
				"xpkg cache verify": "xpkg cache verify --cache-dir cache", "xpkg cache prune": "xpkg cache prune --cache-dir cache",
			},
			loose: []string{"xpkg cache ls", "xpkg cache verify"},
		},
		{
			name: "search-and-index",
			replaced: map[string]string{
				"--registry registry.example.com": "--registry " + p.Registry + "/guide-search", "registry.example.com/index:main": p.Registry + "/guide/index:main",
				"ghcr.io/acme/index:main": p.Registry + "/guide/other:main", "xpkg search bucket": "xpkg search boat --index " + p.Registry + "/guide/index:main",
			},
			skipped: map[string]string{
				"export XPKG_INDEX": "each command has a shell of its own, so the index is an argument",
				"openssl":           "it is not installed everywhere",
				"xpkg index build registry.example.com/index:main --registry registry.example.com --sign-key": "its key is written by openssl",
				"xpkg search bucket --index registry.example.com/index:main --index-key":                      "its index is signed with a key of openssl",
			},
			loose: []string{"xpkg search", "xpkg index"},
		},
		{
			name:     "install-packages",
			replaced: map[string]string{"xpkg.crossplane.io": p.Registry},
			skipped: map[string]string{
				"xpkg uninstall provider-nop": "no custom resource has a finalizer",
				"kubectl patch crd":           "its CRD is an example",
			},
			loose: []string{"kubectl get providers.pkg"},
		},
		{name: "gitops"},
	} {
		t.Run(g.name, func(t *testing.T) { g.run(t, p) })
	}
}

// run executes the commands of a guide.
func (g guide) run(t *testing.T, p plane) {
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", g.name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	before := strings.Fields(p.xpkg(t, "list", "-o", "name"))
	defer func() {
		for _, name := range strings.Fields(p.xpkg(t, "list", "-o", "name")) {
			if !slices.Contains(before, name) {
				p.xpkg(t, "uninstall", name, "--yes", "--wait", limit.String())
			}
		}
	}()
	folder := g.folder(t, p)
	executed, skipped := 0, map[string]bool{}
	for _, s := range stepsOf(string(document)) {
		if reason := byPrefix(g.skipped, s.command); reason != "" {
			skipped[reason] = true
			continue
		}
		executed++
		g.execute(t, p, folder, s)
	}
	if executed == 0 || len(skipped) != len(g.skipped) {
		t.Errorf("%d commands were executed; of %d reasons to skip a command %d apply", executed, len(g.skipped), len(skipped))
	}
}

// folder returns the folder in which a reader executes the commands: the examples, and the files of the guide.
func (g guide) folder(t *testing.T, p plane) string {
	t.Helper()
	root := t.TempDir()
	folder := filepath.Join(root, "examples")
	if err := os.CopyFS(folder, os.DirFS(filepath.Join("..", "..", "examples"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := txtar.ParseFile(filepath.Join("testdata", "guides", g.name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		path := filepath.Join(folder, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(g.readdress(string(f.Data))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(string(archive.Comment)) {
		if command := strings.TrimSpace(line); command != "" && !strings.HasPrefix(command, "#") {
			if code, output := g.shell(t, p, folder, command); code != 0 {
				t.Fatalf("%s\nexit code %d:\n%s", command, code, output)
			}
		}
	}
	return folder
}

// execute executes a command and compares it with the guide.
func (g guide) execute(t *testing.T, p plane, folder string, s step) {
	t.Helper()
	code, output := g.shell(t, p, folder, s.command)
	if want := byPrefix(g.exits, s.command); code != want {
		t.Fatalf("$ %s\nexit code %d, want %d:\n%s", s.command, code, want, output)
	}
	if slices.ContainsFunc(g.loose, func(prefix string) bool { return strings.HasPrefix(s.command, prefix) }) {
		return
	}
	printed := comparable(output)
	for _, line := range s.output {
		if want := comparable(g.readdress(line)); !strings.Contains(printed, want) {
			t.Errorf("$ %s\nthe guide shows %q, which is not printed:\n%s", s.command, line, output)
		}
	}
}

// shell executes a command as a reader types it, and returns its exit code and its output.
func (g guide) shell(t *testing.T, p plane, folder, command string) (int, string) {
	t.Helper()
	var output bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "sh", "-c", g.readdress(command))
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, &output, &output
	cmd.Env = append(slices.Clone(p.env), "KUBECONFIG="+p.Kubeconfig, "HOME="+filepath.Join(folder, "home"), "REGISTRY="+p.Registry)
	cmd.Env = append(cmd.Env, goFolders(t)...)
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), output.String()
}

func (g guide) readdress(text string) string {
	for _, from := range slices.Sorted(maps.Keys(g.replaced)) {
		text = strings.ReplaceAll(text, from, g.replaced[from])
	}
	return text
}

// byPrefix returns the value of the key with which a text starts.
func byPrefix[V any](values map[string]V, text string) V {
	for prefix, value := range values {
		if strings.HasPrefix(text, prefix) {
			return value
		}
	}
	var none V
	return none
}

var variable = regexp.MustCompile(`[0-9a-f]{64}|-[0-9a-f]{12}\b|\d+(\.\d+)? (B|KiB|MiB)`)

// comparable returns a text without the differences between two machines: digests, sizes, and the width of columns.
func comparable(text string) string {
	return strings.Join(strings.Fields(variable.ReplaceAllString(text, "*")), " ")
}

// goFolders returns the variables with which Go finds its caches in another home folder.
func goFolders(t testing.TB) []string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPATH").Output()
	if err != nil {
		t.Fatal(err)
	}
	folders := strings.Fields(string(out))
	return []string{"GOCACHE=" + folders[0], "GOMODCACHE=" + folders[1], "GOPATH=" + folders[2], "GOFLAGS=-mod=readonly"}
}
