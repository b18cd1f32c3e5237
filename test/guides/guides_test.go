// Package guides_test executes the guides about the manager in a cluster, on an API server of its own. The package
// program executes the others.
package guides_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/guide"
	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
)

const namespace = "crossplane-system"

// guides are the guides about the manager in a cluster. A stand-in of the kubelet reports the Pods as running.
var guides = []*guide.Guide{
	{
		Name:  "first-generation-objects",
		Exits: map[string]int{"xpkg migrate first-generation --dry-run": 2},
		Before: map[string]string{
			"xpkg migrate first-generation --dry-run": "kubectl apply -f crossplane-package-manager.yaml && kubectl wait deployment/crossplane-package-manager --namespace crossplane-system --for=condition=Available --timeout=1m",
		},
	},
	{
		Name: "run-the-manager",
		Replaced: map[string]string{
			// The log shows that the manager has started.
			"xpkg manager": "xpkg manager --verbose",
			// The guide shows the chart as the alternative to the command, whose objects exist.
			"helm install": "helm install --take-ownership",
		},
		Skipped: map[string]string{
			"make image": "the tests of tools/image build the images of two architectures",
			"xpkg bootstrap --beside-core --core-values": "there is no network with the chart of Crossplane",
			"kubectl get provider.pkg NAME":              "no other client changes an object of a package",
		},
		Served: []string{"xpkg manager"},
	},
	{
		Name: "move-from-crossplane",
		Replaced: map[string]string{
			"xpkg migrate from-core": "xpkg migrate from-core --yes", "xpkg migrate to-core": "xpkg migrate to-core --yes",
		},
		Exits: map[string]int{"xpkg migrate from-core --dry-run": 2, "xpkg migrate to-core --dry-run": 2},
		Skipped: map[string]string{
			"xpkg bootstrap --beside-core --core-values": "there is no network with the chart of Crossplane",
		},
	},
}

// Each command of the guide works, in the order of the guide and in one folder, and prints what the guide shows.
func TestGuidesWorkFromTopToBottom(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program and Helm: skipped with -short")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	kubectl := filepath.Join(root, "bin", "kubectl")
	if _, err := os.Stat(kubectl); err != nil {
		prerequisite.Missing(t, "bin/kubectl is not built: make build-kubectl")
	}
	s := env.New(t)
	s.StartKubelet(t, namespace)
	bin := filepath.Dir(program.Build(t))
	if err := os.Symlink(kubectl, filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	helm := "#!/bin/sh\nexec go tool -C " + root + " -modfile=" + filepath.Join(root, "tools", "helm", "go.mod") +
		" helm \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "helm"), []byte(helm), 0o700); err != nil {
		t.Fatal(err)
	}
	var executed []string
	for _, g := range guides {
		executed = append(executed, g.Name)
		t.Run(g.Name, func(t *testing.T) {
			r := &guide.Reader{Folder: t.TempDir(), Env: append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(t), "HOME="+
				t.TempDir(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))}
			r.Env = append(r.Env, program.GoFolders(t)...)
			if err := os.CopyFS(filepath.Join(r.Folder, "charts"), os.DirFS(filepath.Join(root, "charts"))); err != nil {
				t.Fatal(err)
			}
			if g.Name == "move-from-crossplane" {
				s.InstallPackageAPI(t) // as Crossplane has done
			}
			g.Run(t, r)
			if g.Name == "run-the-manager" {
				cmd := exec.CommandContext(
					t.Context(), filepath.Join(bin, "helm"), "uninstall", "xpkg", "--namespace", namespace, "--wait",
				)
				cmd.Env = r.Env
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("helm uninstall: %v\n%s", err, out)
				}
			}
		})
	}
	slices.Sort(executed)
	if diff := cmp.Diff(guide.Files(t), executed); diff != "" {
		t.Errorf("executed guides (-files +executed):\n%s", diff)
	}
}
