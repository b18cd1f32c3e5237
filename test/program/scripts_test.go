//go:build unix

package program_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
	"github.com/xpkg-dev/xpkg/internal/testing/session"
)

// TestScripts runs the sessions in testdata. They find
//
//	$REGISTRY     the registry of the control plane, as host:port
//	$KUBECONFIG   the kubeconfig of the control plane
//	$DATA         its data directory
//	$API_PORT, $REGISTRY_PORT
//	$METRICS      a free address
//	$FIRST        another registry, that closeregistry closes
//	hello/        a copy of the examples whose dependencies name $REGISTRY
//
// and the commands of scriptcommands_test.go. They share the control plane and run one
// after the other, because some commands concern all installed packages.
func TestScripts(t *testing.T) {
	p := shared(t)
	if !isFile(filepath.Join(p.dir, "kubectl")) {
		prerequisite.Missing(t, "bin/kubectl is not built: make build-kubectl")
	}
	testscript.RunT(session.InTurn(t), testscript.Params{
		Files: session.Scripts(t,
			"testdata", "main-job", "kubectl", "lock", "plan", "policy", "refused-installs", "refused-packages", "removals",
			"repeat", "sync", "tampered"),
		RequireExplicitExec: true,
		Cmds:                scriptCommands,
		Setup: func(e *testscript.Env) error {
			_, apiPort, err := net.SplitHostPort(strings.TrimPrefix(p.Server, "https://"))
			if err != nil {
				return err
			}
			_, registryPort, err := net.SplitHostPort(p.Registry)
			if err != nil {
				return err
			}
			e.Vars = append(e.Vars, p.env...)
			e.Vars = append(e.Vars, "HOME="+filepath.Join(e.WorkDir, "home"), "KUBECONFIG="+p.Kubeconfig, "REGISTRY="+p.Registry,
				"DATA="+p.DataDir, "API_PORT="+apiPort, "REGISTRY_PORT="+registryPort)
			if tb, ok := e.T().(testing.TB); ok {
				e.Vars = append(e.Vars, "METRICS="+port.Free(tb))
				if err := openFirst(tb, e); err != nil {
					return err
				}
			}
			return copyExamples(filepath.Join(e.WorkDir, "hello"), p.Registry)
		},
	})
}

// copyExamples copies the folders of the packages, with the address of another
// registry in their dependencies.
func copyExamples(to, registry string) error {
	from := filepath.Join("..", "..", "examples")
	folders := map[string]string{
		"provider-hello": "provider-hello/package", "function-greet": "function-greet/package",
		"configuration-hello": "configuration-hello",
	}
	for name, folder := range folders {
		target := filepath.Join(to, name)
		if err := os.CopyFS(target, os.DirFS(filepath.Join(from, filepath.FromSlash(folder)))); err != nil {
			return err
		}
		meta := filepath.Join(target, "crossplane.yaml")
		content, err := os.ReadFile(meta)
		if err != nil {
			return err
		}
		readdressed := strings.ReplaceAll(string(content), "127.0.0.1:15000", registry)
		if err := os.WriteFile(meta, []byte(readdressed), 0o644); err != nil {
			return err
		}
	}
	return nil
}
