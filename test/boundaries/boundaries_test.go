// Package boundaries_test keeps the rooms of the house apart: what is pure stays
// pure, and what is heavy stays out.
package boundaries_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/xpkg-dev/xpkg/"

// pure packages compute: values in, values out. They may not reach for a network,
// a cluster, a process or a clock of their own.
var pure = []string{"internal/bootstrap", "internal/desired", "internal/failure", "internal/format", "internal/imageconfig", "internal/plan", "internal/revision", "internal/rights", "internal/runtime/shape", "internal/solve", "internal/spelling", "internal/wording"}

// worldly are what pure packages may not import.
var worldly = []string{
	"net", "net/http", "os/exec", "k8s.io/client-go", "sigs.k8s.io/controller-runtime",
	"github.com/google/go-containerregistry", module + "internal/oci", module + "internal/apply",
	module + "internal/content", module + "internal/manager", module + "internal/up", module + "internal/cli",
}

// imports lists the direct imports of a package, without those of its tests.
func imports(t *testing.T, pkg string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, "./"+pkg)
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", pkg, err)
	}
	return strings.Fields(string(out))
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func within(path, pkg string) bool { return path == pkg || strings.HasPrefix(path, pkg+"/") }

func TestPurePackages(t *testing.T) {
	for _, pkg := range pure {
		for _, imported := range imports(t, pkg) {
			for _, w := range worldly {
				if within(imported, w) && imported != "net/netip" && imported != "net/url" {
					t.Errorf("%s computes, and may not import %s", pkg, imported)
				}
			}
		}
	}
}

func TestOnlyTheManagerAndCommandsKnowControllers(t *testing.T) {
	for _, pkg := range []string{"internal/apply", "internal/oci", "internal/content", "internal/up", "apis/pkg/v1"} {
		for _, imported := range imports(t, pkg) {
			if within(imported, "sigs.k8s.io/controller-runtime") {
				t.Errorf("%s imports %s, which belongs to the manager and the commands", pkg, imported)
			}
		}
	}
}

// Kubernetes itself is a dependency of the nested module alone, so that the
// library, the command and the manager stay light.
func TestKubernetesStaysInItsModule(t *testing.T) {
	for _, file := range []string{"go.mod", "tools/go.mod", "tools/lint/go.mod", "tools/helm/go.mod", "tools/image/go.mod", "examples/function-greet/go.mod"} {
		raw, err := os.ReadFile(filepath.Join(root(t), file))
		if err != nil {
			t.Fatal(err)
		}
		for _, heavy := range []string{"k8s.io/kubernetes ", "go.etcd.io/etcd/server/"} {
			if strings.Contains(string(raw), heavy) {
				t.Errorf("%s requires %s: only controlplane/go.mod may", file, heavy)
			}
		}
	}
}
