package program_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/scratch"
)

// TestCompositionTestsShareTheProcessesOfFunctions runs a hundred tests of the example with one process of its function,
// twice with the same output. A function that ends at its start spoils only the tests that use it.
func TestCompositionTestsShareTheProcessesOfFunctions(t *testing.T) {
	w := newWorkshop(t)
	executable, err := scratch.Compile("../../examples/function-greet/cmd/function-greet")
	if err != nil {
		t.Fatal(err)
	}
	host := cluster.Registry(t)
	for _, name := range []string{"function-greet", "provider-hello", "function-ends"} {
		kind := map[bool]string{true: "Provider", false: "Function"}[name == "provider-hello"]
		var args []string
		if name == "function-ends" {
			args = []string{"--no-such-flag"}
		}
		publish.Program(t, host, "examples/"+name, "v0.1.0",
			[]byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: "+kind+"\nmetadata: {name: "+name+"}\n"), executable, args...)
	}
	work := t.TempDir()
	if err := copyExamples(work, host); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(work, "configuration-hello")
	const test = `apiVersion: meta.dev.upbound.io/v1alpha1
kind: CompositionTest
metadata: {name: guest-%d}
spec:
  xr: {apiVersion: hello.xpkg.dev/v1alpha1, kind: XWelcome, metadata: {name: visitors}, spec: {guest: guest-%[1]d}}
  assertResources:
  - {apiVersion: hello.xpkg.dev/v1alpha1, kind: Greeting, spec: {name: guest-%[1]d, language: en}}
---
`
	const ends = `apiVersion: meta.dev.upbound.io/v1alpha1
kind: CompositionTest
metadata: {name: ends}
spec:
  xr: {apiVersion: hello.xpkg.dev/v1alpha1, kind: XWelcome, metadata: {name: visitors}, spec: {guest: a}}
  composition:
    apiVersion: apiextensions.crossplane.io/v1
    kind: Composition
    metadata: {name: ends}
    spec:
      compositeTypeRef: {apiVersion: hello.xpkg.dev/v1alpha1, kind: XWelcome}
      mode: Pipeline
      pipeline: [{step: only, functionRef: {name: examples-function-ends}}]
`
	if err := os.Mkdir(filepath.Join(dir, "tests"), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, "tests", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var all strings.Builder
	for i := range 100 {
		fmt.Fprintf(&all, test, i)
	}
	write("guests.yaml", all.String())
	run := func(args ...string) (string, string, error) {
		cmd := exec.Command(w.program(), append([]string{"test"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(w.env, "XPKG_CACHE_DIR="+filepath.Join(work, "cache"))
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		return stdout.String(), stderr.String(), err
	}
	first, messages, err := run("--timeout", "5m")
	if err != nil || strings.Count(first, "passed ") != 100 || strings.Count(messages, "starting the function") > 1 {
		t.Fatalf("%v\n%s\n%s", err, first, messages)
	}
	if again, messages, err := run("--timeout", "5m"); err != nil || again != first {
		t.Errorf("%v\n%s\n%s", err, again, messages)
	}
	write("ends.yaml", ends)
	out, messages, err := run("--timeout", "5m", "--package", host+"/examples/function-ends:v0.1.0")
	if err == nil || strings.Count(out, "passed ") != 100 ||
		!strings.Contains(out, "error   tests/ends.yaml: ends: FunctionStart: ") || !strings.Contains(out, "no-such-flag") {
		t.Errorf("%v\n%s\n%s", err, out, messages)
	}

	// A function of a Project is built and run too. The image of its templates is the function of the example.
	dir = filepath.Join(work, "fleets")
	composition, err := os.ReadFile(filepath.Join(work, "configuration-hello", "composition.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"crossplane-project.yaml": "apiVersion: dev.crossplane.io/v1alpha1\nkind: Project\nmetadata: {name: fleets}\n" +
			"spec: {repository: example.org/acme/fleets}\n",
		"apis/composition.yaml":        strings.ReplaceAll(string(composition), "examples-function-greet", "acme-fleetscompose"),
		"functions/compose/app.gotmpl": "{{ .observed }}\n",
		"tests/guests.yaml":            fmt.Sprintf(strings.Replace(test, ", language: en", "", 1), 7),
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, messages, err = run("--timeout", "5m", "--go-templating-image", host+"/examples/function-greet:v0.1.0")
	if err != nil || out != "passed  tests/guests.yaml: guest-7\n" {
		t.Errorf("%v\n%s\n%s", err, out, messages)
	}
}
