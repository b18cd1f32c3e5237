package permissions_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/manager"
	"github.com/xpkg-dev/xpkg/internal/preview"
	"github.com/xpkg-dev/xpkg/internal/rights"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
)

// xpkg runs a command against the cluster of the tests.
func xpkg(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, failed bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &failed}
	code = cli.Main(t.Context(), append(append([]string{"xpkg"}, args...), "--kubeconfig", cluster.Kubeconfig(t)), env)
	return code, out.String(), failed.String()
}

// A plan shows how the rights of the program change, and is what the manager then
// asks about; over the ceiling it is refused.
func TestPlanShowsRights(t *testing.T) {
	s := newStand(t)
	s.run(t, s.config, manager.Permissions{Increase: manager.ApproveIncrease})
	ceiling := filepath.Join(t.TempDir(), "ceiling.yaml")
	if err := os.WriteFile(ceiling, []byte("deny: [{name: no-nodes, resources: [nodes]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := s.install(t, "planned", provider("planned", "", requests(readsPods), crd("things.planned.example.org", "Namespaced")))
	s.healthy(t, p)

	second := s.publish(t, "permissions/planned", "v2", provider("planned", "", requests(`{apiGroups: [""], resources: [pods], verbs: [get, watch]}`), crd("things.planned.example.org", "Namespaced")))
	code, text, stderr := xpkg(t, "plan", "update", "planned", second, "--cache-dir", t.TempDir(), "--permission-ceiling", ceiling)
	if code != 2 || !strings.Contains(text, "+  watch pods in the core group\n  -  list pods in the core group\n") {
		t.Errorf("exit code %d\n%s%s", code, text, stderr)
	}
	_, raw, _ := xpkg(t, "plan", "update", "planned", second, "--cache-dir", t.TempDir(), "-o", "json")
	var plan preview.Plan
	if err := json.Unmarshal([]byte(raw), &plan); err != nil || plan.Permissions == nil {
		t.Fatalf("%v: %s", err, raw)
	}
	s.upgrade(t, p, "v2", provider("planned", "", requests(`{apiGroups: [""], resources: [pods], verbs: [get, watch]}`), crd("things.planned.example.org", "Namespaced")))
	if message := s.waits(t, p, rights.ErrPermissionIncrease.Name); !strings.Contains(message, rights.Fingerprint(plan.Permissions.Added)) {
		t.Errorf("the manager asks for something else than was planned: %s", message)
	}

	third := s.publish(t, "permissions/planned", "v3", provider("planned", "", requests(`{apiGroups: [""], resources: [nodes], verbs: [get]}`)))
	code, text, stderr = xpkg(t, "plan", "update", "planned", third, "--cache-dir", t.TempDir(), "--permission-ceiling", ceiling)
	if code != failure.Invalid.Exit || !strings.Contains(text, "no-nodes") || !strings.Contains(stderr, rights.ErrPermissionDenied.Name) {
		t.Errorf("over the ceiling: exit code %d\n%s%s", code, text, stderr)
	}
}

// Neither the plan nor the manager takes a definition of what belongs to Kubernetes.
func TestReservedDefinitions(t *testing.T) {
	s := newStand(t)
	s.run(t, s.config, manager.Permissions{})
	stream := provider("reserved", "", "", strings.Replace(crd("csidrivers.storage.k8s.io", "Cluster"),
		"metadata: {", "metadata: {annotations: {api-approved.kubernetes.io: \"https://example.org\"}, ", 1))
	p := s.install(t, "reserved", stream)
	s.waits(t, p, rights.ErrReservedDefinition.Name)
	s.absent(t, &apiextensionsv1.CustomResourceDefinition{}, "csidrivers.storage.k8s.io")
	if code, _, stderr := xpkg(t, "plan", "install", "provider", p.Spec.Package, "reserved-2", "--cache-dir", t.TempDir()); code != failure.Invalid.Exit || !strings.Contains(stderr, rights.ErrReservedDefinition.Name) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
