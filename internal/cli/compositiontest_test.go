package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/function/protocol"
	"github.com/xpkg-dev/xpkg/internal/testing/functiontest"
)

// testedPackage writes a package with one test for each function, by the names of the functions and their addresses.
func testedPackage(t *testing.T, functions map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"crossplane.yaml": "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: fleet}\n",
	}
	for name, address := range functions {
		files["examples/"+name+".yaml"] = fmt.Sprintf(`apiVersion: pkg.crossplane.io/v1
kind: Function
metadata:
  name: %s
  annotations: {render.crossplane.io/runtime: Development, render.crossplane.io/runtime-development-target: %q}
`, name, address)
		files["tests/"+name+".yaml"] = fmt.Sprintf(`apiVersion: meta.dev.upbound.io/v1alpha1
kind: CompositionTest
metadata: {name: %[1]s}
spec:
  timeoutSeconds: %[2]d
  xr: {apiVersion: acme.example.org/v1, kind: Fleet, metadata: {name: a}}
  composition:
    apiVersion: apiextensions.crossplane.io/v1
    kind: Composition
    metadata: {name: %[1]s}
    spec:
      compositeTypeRef: {apiVersion: acme.example.org/v1, kind: Fleet}
      mode: Pipeline
      pipeline: [{step: only, functionRef: {name: %[1]s}}]
`, name, map[bool]int{true: 1, false: 60}[name == "hangs"])
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A function that fails spoils its own test only, and the error names what to do.
func TestFunctionsThatFailSpoilTheirOwnTest(t *testing.T) {
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	works := func(r *protocol.Request) (*protocol.Response, error) {
		return &protocol.Response{Desired: r.Desired}, nil
	}
	dir := testedPackage(t, map[string]string{
		"works": functiontest.Serve(t, works),
		"hangs": functiontest.Serve(t, func(*protocol.Request) (*protocol.Response, error) {
			<-hang
			return nil, errors.New("it is too late")
		}),
		"crashes": functiontest.Serve(t, func(*protocol.Request) (*protocol.Response, error) { panic(http.ErrAbortHandler) }),
		"fails": functiontest.Serve(t, func(*protocol.Request) (*protocol.Response, error) {
			return nil, functiontest.Status{Code: 13, Message: "out of paint"}
		}),
		"fatal": functiontest.Serve(t, func(*protocol.Request) (*protocol.Response, error) {
			return &protocol.Response{Results: []protocol.Result{{Severity: protocol.SeverityFatal, Message: "no wind"}}}, nil
		}),
		"absent": "127.0.0.1:1",
	})
	var out, errs bytes.Buffer
	code := cli.Main(t.Context(), []string{"xpkg", "test", dir, "-o", "json"}, &cli.Env{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
	})
	var report struct {
		Tests []struct {
			Name, Verdict, Code, Message, Fix string
			Differences                       []struct{ Message string }
		}
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || code != 4 {
		t.Fatalf("exit code %d, %v\n%s", code, err, errs.String())
	}
	want := map[string][3]string{
		"absent":  {"error", "FunctionUnreachable", "Start the function"},
		"crashes": {"error", "FunctionUnreachable", "Start the function"},
		"fails":   {"error", "FunctionCall", "Correct the function"},
		"fatal":   {"failed", "", ""},
		"hangs":   {"error", "FunctionUnreachable", "Set spec.timeoutSeconds of the test to more than 1."},
		"works":   {"passed", "", ""},
	}
	for _, r := range report.Tests {
		w, ok := want[r.Name]
		if !ok || r.Verdict != w[0] || r.Code != w[1] || !strings.Contains(r.Fix, w[2]) {
			t.Errorf("got %+v, want %v", r, w)
		}
		if r.Name == "fatal" && (len(r.Differences) != 1 || r.Differences[0].Message != "fatal: no wind") {
			t.Errorf("got %+v", r)
		}
		delete(want, r.Name)
	}
	if len(want) > 0 {
		t.Errorf("no result of %v", want)
	}
}
