package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/composition"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/function/call"
	"github.com/xpkg-dev/xpkg/internal/function/protocol"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/scratch"
	"github.com/xpkg-dev/xpkg/internal/testing/sourcetest"
)

// TestMain runs the init process of the sandbox, which the supervisor starts from this binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.InitCommand {
		if err := sandbox.Init(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const functionPackage = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata: {name: function-greet}\n"

// start starts a function from an image with an executable.
func start(t *testing.T, name string, executable []byte) (string, error) {
	t.Helper()
	source := sourcetest.New(t, nil)
	origin := fetch.Plain(publish.Program(t, cluster.Registry(t), "acme/"+
		name, "v0.1.0", []byte(functionPackage), executable))
	digest, err := source.Resolve(t.Context(), origin, 0)
	if err != nil {
		t.Fatal(err)
	}
	roots, err := sandbox.NewRoots(sandbox.RootsOptions{Dir: t.TempDir(), Source: source})
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(t.TempDir(), roots, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h.Start(t.Context(), name, origin, digest)
}

// one calls the same function by every name.
type one struct{ *call.Client }

func (o one) Call(ctx context.Context, _ string, r *protocol.Request) (*protocol.Response, error) {
	return o.Client.Call(ctx, r)
}

// TestExampleComposesWithARealFunction renders the composite resource of the example with the program of the example,
// which uses the public library for functions.
func TestExampleComposesWithARealFunction(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a program")
	}
	executable, err := scratch.Compile("../../../examples/function-greet/cmd/function-greet")
	if err != nil {
		t.Fatal(err)
	}
	address, err := start(t, "function-greet", executable)
	if err != nil {
		t.Fatal(err)
	}
	client, err := call.New(address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	raw, err := os.ReadFile("../../../examples/configuration-hello/composition.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = yaml.YAMLToJSON(raw); err != nil {
		t.Fatal(err)
	}
	c, err := composition.Parse(raw, "composition.yaml")
	if err != nil {
		t.Fatal(err)
	}
	xr := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "hello.xpkg.dev/v1alpha1", "kind": "XWelcome", "metadata": map[string]any{"name": "visitors"},
		"spec": map[string]any{"guest": "world"},
	}}
	out, err := composition.Render(t.Context(), one{client}, composition.Input{Composite: xr, Composition: c})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"name": "world"}
	if len(out.Composed) != 1 || out.Composed[0].GetKind() != "Greeting" ||
		cmp.Diff(want, out.Composed[0].Object["spec"]) != "" {
		t.Errorf("got %v", out.Composed)
	}
	xr.Object["spec"] = map[string]any{}
	if _, err := composition.Render(t.Context(), one{client}, composition.Input{
		Composite: xr, Composition: c,
	}); !errors.Is(err, composition.ErrFatalResult) {
		t.Errorf("got %v", err)
	}
}

func TestFunctionThatEndsIsReportedWithItsLog(t *testing.T) {
	executable, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	// A shell rejects the flag --insecure, or lacks its libraries.
	_, err = start(t, "function-broken", executable)
	if err == nil || !strings.Contains(err.Error(), "function-broken") {
		t.Errorf("got %v", err)
	}
}
