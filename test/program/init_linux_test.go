package program_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
)

// TestNewPackagesAreHealthy proves that the files of `xpkg init` become healthy packages with the commands of their
// READMEs, on a control plane with process runtimes, and that the new provider reconciles its resources.
func TestNewPackagesAreHealthy(t *testing.T) {
	lane.Full(t, "test/program.TestScripts")
	w := newWorkshop(t)
	w.env = append(w.env, program.GoFolders(t)...)
	p := w.withRuntimes(t, "new")
	work := t.TempDir()
	for _, kind := range []string{"provider", "function", "configuration"} {
		name := kind + "-boats"
		folder, file, ref := filepath.Join(work, name), filepath.Join(work, name+".xpkg"), p.Registry+"/new/"+name+":v0.1.0"
		p.xpkg(t, "init", kind, name, "--group", kind+".boats.example.org", "-d", folder)
		build, install := []string{"build", "-f", folder, "-o", file}, []string{"install", ref, name, "--wait", "3m"}
		if kind == "configuration" {
			// Its dependency is in a public registry.
			install = append(install, "--skip-dependency-resolution")
		} else {
			build = []string{"build", "-f", filepath.Join(folder, "package"), "--embed-go-program", folder, "-o", file}
		}
		p.xpkg(t, build...)
		p.xpkg(t, "push", "-f", file, ref)
		p.xpkg(t, install...)
	}

	thing := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(3)}}}
	thing.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "provider.boats.example.org", Version: "v1alpha1", Kind: "Thing",
	})
	thing.SetName("example")
	c := newClient(t, p.Kubeconfig)
	if err := c.Create(t.Context(), thing); err != nil {
		t.Fatal(err)
	}
	until(t, "the provider reports the size", func(ctx context.Context) (string, bool) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(thing), thing); err != nil {
			return err.Error(), false
		}
		size, _, _ := unstructured.NestedInt64(thing.Object, "status", "size")
		return fmt.Sprint(thing.Object["status"]), size == 3
	})
}
