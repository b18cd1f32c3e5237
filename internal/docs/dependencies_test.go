package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every direct dependency and every tool has a line that states its purpose.
func TestDependenciesAreDocumented(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{
		"go.mod", "controlplane/go.mod", "tools/go.mod", "tools/lint/go.mod", "tools/helm/go.mod", "tools/image/go.mod",
		"tools/release/go.mod", "tools/alerts/go.mod", "tools/site/go.mod", "examples/function-greet/go.mod",
	} {
		out, err := exec.Command("go", "mod", "edit", "-json", filepath.Join(root, file)).Output()
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var mod struct {
			Require []struct {
				Path     string
				Indirect bool
			}
			Tool []struct{ Path string }
		}
		if err := json.Unmarshal(out, &mod); err != nil {
			t.Fatal(err)
		}
		for _, r := range mod.Require {
			if !r.Indirect && !strings.Contains(string(page), "`"+r.Path+"`") {
				t.Errorf("docs/dependencies.md does not state the purpose of %s (%s)", r.Path, file)
			}
		}
		for _, tool := range mod.Tool {
			module, _, _ := strings.Cut(tool.Path, "/cmd/")
			if !strings.Contains(string(page), "`"+module+"`") {
				t.Errorf("docs/dependencies.md does not state the purpose of the tool %s (%s)", tool.Path, file)
			}
		}
	}
}
