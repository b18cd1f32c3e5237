package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A Provider whose runtime has the gate of safe-start is reported if its metadata has lost the capability, wherever the
// name of the gate is in the image. Others are not.
func TestLintReportsALostCapability(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	const gate = "github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/customresourcesgate.Setup"
	for name, tc := range map[string]struct {
		program, capabilities string
		lost                  bool
	}{
		"lost":                       {gate, "", true},
		"lost, far inside":           {strings.Repeat("x", 1<<20-90) + gate, "", true},
		"lost, across two reads":     {strings.Repeat("x", 1<<21-512-40) + gate, "", true},
		"declared":                   {gate, "\n  capabilities: [SafeStart]", false},
		"a runtime without a gate":   {"crossplane-runtime/v2/pkg/reconciler/managed.Setup", "", false},
		"a text about the runtime":   {"customresourcesgate", "", false},
		"lost, with another keyword": {gate, "\n  capabilities: [other]", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			meta := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: gated\nspec:\n  crossplane:\n    version: \">=v1.20.0\"" +
				tc.capabilities + "\n"
			if err := os.WriteFile(filepath.Join(dir, "crossplane.yaml"), []byte(meta), 0o600); err != nil {
				t.Fatal(err)
			}
			file, runtime := filepath.Join(t.TempDir(), "gated.xpkg"), filepath.Join(t.TempDir(), "runtime.tar")
			writeRuntime(t, runtime, tc.program)
			runXpkg(t, "build", "-f", dir, "--embed-runtime-image-tarball", runtime, "-o", file)
			if got := runXpkg(t, "lint", file); strings.Contains(got, "LostCapability") != tc.lost {
				t.Errorf("lint prints:\n%s", got)
			}
		})
	}
}
