package program_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/up"
)

// buildCore builds the stand-in of core, and writes CRDs beside it: one of core's own, and one of the package API.
func buildCore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "crossplane")
	cmd := exec.CommandContext(
		t.Context(), "go", "build", "-o", file, "github.com/xpkg-dev/xpkg/internal/testing/standincore",
	)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	write(t, filepath.Join(dir, "crds", "own.yaml"), definition("ops.crossplane.io", "examples"))
	write(t, filepath.Join(dir, "crds", "packages.yaml"), strings.Replace(
		definition("pkg.crossplane.io", "providers"), "        type: object\n",
		"        type: object\n        description: Of core.\n", 1,
	))
	return file
}

// boats is an XRD.
const boats = `apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: boats.core.test}
spec:
  group: core.test
  names: {kind: Boat, plural: boats}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    referenceable: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}
`

// TestUpRunsCore proves that `xpkg up --with-core` runs an executable of core: after its initialization with its own
// CRDs only, able to establish XRDs of packages and others, denied every write of packages, restarted when it is
// killed, fenced again when another client removes the fence, and stopped with the control plane.
func TestUpRunsCore(t *testing.T) {
	w := newWorkshop(t)
	dir := w.newData(t, "core")
	args := append(upArgs(dir), "--with-core", buildCore(t), "--detach")
	begun := w.run(t.Context(), "", args...)
	if begun.err != nil {
		t.Fatalf("xpkg up: %v\n%s", begun.err, begun.stderr)
	}
	down := func() result { return w.run(context.Background(), "", "down", "--data-dir", dir) }
	t.Cleanup(func() { down() })
	if !strings.Contains(begun.stdout, "Crossplane core composes resources") {
		t.Errorf("the output does not mention core:\n%s", begun.stdout)
	}
	report, err := up.Status(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := plane{w, report.State}
	c := newClient(t, p.Kubeconfig)

	crds := definitions(t, c, "")
	found := map[string]bool{}
	for _, crd := range crds {
		found[crd.Name] = true
		if schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema; crd.Name == "providers.pkg.crossplane.io" &&
			strings.Contains(schema.Description, "Of core") {
			t.Error("the initialization of core replaced a CRD of the package API")
		}
	}
	if !found["examples.ops.crossplane.io"] {
		t.Error("the initialization of core did not apply its own CRD")
	}

	// A Configuration is healthy and its XRD established, because core does that.
	folder := t.TempDir()
	write(
		t, filepath.Join(folder, "crossplane.yaml"),
		"apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: boats}\n",
	)
	write(t, filepath.Join(folder, "definition.yaml"), boats)
	p.xpkg(t, "install", "configuration", p.publish(t, folder, "core/boats"), "boats", "--wait", "1m")
	until(t, "the Configuration is composed", func(ctx context.Context) (string, bool) {
		p := &v1.Configuration{}
		if err := c.Get(ctx, client.ObjectKey{Name: "boats"}, p); err != nil {
			return err.Error(), false
		}
		ready := p.GetCondition("Ready")
		return fmt.Sprint(ready), ready.Status == "True" && ready.Reason != v1.ReasonNotComposed
	})

	// So is an XRD that no package contains: core may use its resources, because its roles follow it.
	ships := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(
		[]byte(strings.NewReplacer("boat", "ship", "Boat", "Ship").Replace(boats)), &ships.Object,
	); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), ships); err != nil {
		t.Fatal(err)
	}
	until(t, "the XRD of no package is established", func(ctx context.Context) (string, bool) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(ships), ships); err != nil {
			return err.Error(), false
		}
		conditions, established, _ := unstructured.NestedSlice(ships.Object, "status", "conditions")
		return fmt.Sprint(conditions), established
	})
	var providers v1.ProviderList
	if err := c.List(t.Context(), &providers); err != nil || len(providers.Items) > 0 {
		t.Errorf("%d providers and %v: core is not fenced", len(providers.Items), err)
	}

	for _, o := range []client.Object{
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: crossplane.FenceName}},
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: crossplane.FenceName}},
	} {
		if err := c.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	first := coreProcess(t, dir)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatalf("kill core: %v", err)
	}
	until(t, "the fence is restored", func(ctx context.Context) (string, bool) {
		err := c.Get(ctx, client.ObjectKey{Name: crossplane.FenceName}, &admissionv1.ValidatingAdmissionPolicyBinding{})
		return fmt.Sprint(err), err == nil
	})
	until(t, "core runs again", func(ctx context.Context) (string, bool) {
		r := w.run(ctx, "", "status", "--data-dir", dir)
		return r.stdout, r.code == 0 && coreProcess(t, dir) != first
	})
	if log := p.xpkg(t, "logs", "crossplane", "--data-dir", dir); !strings.Contains(log, "arguments") {
		t.Errorf("the log of core:\n%s", log)
	}
	if log := p.xpkg(
		t, "logs", "crossplane-init", "--data-dir", dir,
	); !strings.Contains(log, "apply examples.ops.crossplane.io") || strings.Contains(log, "pkg.crossplane.io") {
		t.Errorf("the log of the initialization:\n%s", log)
	}
	if r := down(); r.err != nil {
		t.Fatal(r.stderr)
	}
	if err := syscall.Kill(coreProcess(t, dir), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("core still runs: %v", err)
	}
}

// coreStart is the log line of a start of core.
var coreStart = regexp.MustCompile(`msg="program started" program=crossplane pid=(\d+)`)

// coreProcess returns the process of the last start of core.
func coreProcess(t *testing.T, dir string) int {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(dir, "logs", "up.log"))
	if err != nil {
		t.Fatal(err)
	}
	starts := coreStart.FindAllSubmatch(log, -1)
	if len(starts) == 0 {
		t.Fatalf("core was not started:\n%s", log)
	}
	pid, err := strconv.Atoi(string(starts[len(starts)-1][1]))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// TestUpRefusesWrongCores proves that a start with an image that cannot be a supported core ends at once, with the
// reason, and leaves no process.
func TestUpRefusesWrongCores(t *testing.T) {
	lane.Full(t, "test/program.TestScripts")
	w := newWorkshop(t)
	text := filepath.Join(t.TempDir(), "text")
	write(t, text, "not an image")
	for _, c := range []struct {
		name, core, code string
		exit             int
	}{
		{"missing file", filepath.Join(t.TempDir(), "none"), "ArchiveNotFound", 5},
		{"text", text, "NotAnArchive", 4},
		{"dynamically linked", "/bin/sh", "InvalidCore", 4},
		{"standard input", "-", "Usage", 3},
		{"registry that does not respond", "127.0.0.1:1/crossplane/crossplane:v2.1.0", "RegistryUnavailable", 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := w.newData(t, "wrong")
			begin := time.Now()
			r := w.run(t.Context(), "", append(upArgs(dir), "--with-core", c.core)...)
			if r.code != c.exit || !strings.Contains(r.stderr, c.code) {
				t.Errorf(
					"exit code %d after %s, want %d and %s:\n%s", r.code, time.Since(begin).Round(time.Second), c.exit, c.code,
					r.stderr,
				)
			}
		})
	}
}
