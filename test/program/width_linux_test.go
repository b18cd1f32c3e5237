package program_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/pty"
)

// The commands that read a cluster write no line that is wider than the terminal, also with long names. Those that need
// none are checked by the scripts of the commands.
func TestLinesFitTheTerminal(t *testing.T) {
	p := shared(t)
	folder := t.TempDir()
	var refs []string
	needs := ""
	for i := range 5 {
		name := fmt.Sprintf("provider-with-a-name-that-fills-lines-%d", i)
		ref := p.publish(t, providerFolder(t, name, fmt.Sprintf("width%d.program.example.org", i), 2), "width/of/terminals/"+
			name)
		refs = append(refs, ref)
		needs += fmt.Sprintf(
			"  - {apiVersion: pkg.crossplane.io/v1, kind: Provider, package: %s, version: \">=v1.0.0\"}\n",
			strings.TrimSuffix(ref, ":v1.0.0"),
		)
	}
	const name = "configuration-with-a-name-that-fills-lines"
	write(t, filepath.Join(folder, "crossplane.yaml"),
		"apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: "+name+"}\nspec:\n  dependsOn:\n"+needs)
	ref := p.publish(t, folder, "width/of/terminals/"+name)
	p.xpkg(t, "install", "configuration", ref, name, "--wait", "2m")
	t.Cleanup(func() {
		p.run(context.WithoutCancel(t.Context()), p.Kubeconfig, "uninstall", "configuration/"+name, "--yes", "--wait", "1m")
		p.run(context.WithoutCancel(t.Context()), p.Kubeconfig, "autoremove", "--yes", "--wait", "1m")
	})
	// A package whose content does not exist.
	missing := p.Registry + "/width/of/terminals/missing-provider-with-a-name-that-fills-lines:v1.0.0"
	_ = p.run(t.Context(), p.Kubeconfig, "install", "provider", missing, "missing-with-a-name-that-fills-lines")
	t.Cleanup(func() {
		p.run(
			context.WithoutCancel(t.Context()), p.Kubeconfig, "uninstall", "provider/missing-with-a-name-that-fills-lines",
			"--yes",
		)
	})
	lock := filepath.Join(t.TempDir(), "xpkg.lock")
	p.xpkg(t, "resolve", ref, "--lock", lock)
	of := "configuration/" + name
	for _, line := range []string{
		"list ", "kinds ", "kinds --all", "tree ", "tree " + of, "describe " + of, "describe provider/missing-with-a-name-that-fills-lines",
		"history " + of, "outdated --all", "verify ",
		"why " + strings.TrimSuffix(refs[0], ":v1.0.0"), "versions " + refs[0], "doctor ", "status --data-dir " + p.DataDir,
		"resolve " + ref,
		"plan install provider " + refs[0] + " second", "plan update " + of + " " + ref, "plan uninstall " + of,
		"plan rollback " + of, "plan autoremove ", "plan sync --lock " + lock,
		"inspect " + ref, "autoremove --dry-run", "registry token list --dir " + t.TempDir(), "config view",
	} {
		for _, columns := range []int{80, 120} {
			term := startTerminal(t, uint16(columns), p, strings.Fields(line)...)
			code, _ := term.wait(t)
			t.Logf("xpkg %s in %d columns: exit code %d\n%s", line, columns, code, term.output.String())
			for _, wide := range pty.WideLines(term.output.String(), columns) {
				t.Errorf("xpkg %s writes in %d columns a line that is wider: %s", line, columns, wide)
			}
		}
	}
}
