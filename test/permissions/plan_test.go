package permissions_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// xpkg runs a command against the cluster of the tests.
func xpkg(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, failed bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &failed}
	code = cli.Main(t.Context(), append(append([]string{"xpkg"}, args...), "--kubeconfig", cluster.Kubeconfig(t)), env)
	return code, out.String(), failed.String()
}

// A plan shows the changes of the permissions of a runtime, and the manager then requests approval for
// the same changes. A plan above the maximum is refused.
func TestPlanShowsPermissions(t *testing.T) {
	s := newSuite(t)
	s.run(t, s.Config, controller.Permissions{Increase: controller.ApproveIncrease})
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("deny: [{name: no-nodes, resources: [nodes]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := s.install(
		t, "planned", provider("planned", "", requests(readsPods), crd("things.planned.example.org", "Namespaced")),
	)
	s.healthy(t, p)

	second := s.Push(t, "permissions/planned", "v2", provider(
		"planned", "", requests(`{apiGroups: [""], resources: [pods], verbs: [get, watch]}`),
		crd("things.planned.example.org", "Namespaced"),
	))
	code, text, stderr := xpkg(
		t, "plan", "update", "planned", second, "--cache-dir", t.TempDir(), "--permission-policy", policy,
	)
	if code != 2 || !strings.Contains(text, "+  watch pods in the core group\n  -  list pods in the core group\n") {
		t.Errorf("exit code %d\n%s%s", code, text, stderr)
	}
	_, raw, _ := xpkg(t, "plan", "update", "planned", second, "--cache-dir", t.TempDir(), "-o", "json")
	var plan planner.Plan
	if err := json.Unmarshal([]byte(raw), &plan); err != nil || plan.Permissions == nil {
		t.Fatalf("%v: %s", err, raw)
	}
	s.upgrade(t, p, "v2", provider(
		"planned", "", requests(`{apiGroups: [""], resources: [pods], verbs: [get, watch]}`),
		crd("things.planned.example.org", "Namespaced"),
	))
	if message := s.waits(
		t, p, rbac.ErrPermissionIncrease.Name,
	); !strings.Contains(message, rbac.Fingerprint(plan.Permissions.Added)) {
		t.Errorf("the manager asks for something else than was planned: %s", message)
	}

	third := s.Push(
		t, "permissions/planned", "v3",
		provider("planned", "", requests(`{apiGroups: [""], resources: [nodes], verbs: [get]}`)),
	)
	code, text, stderr = xpkg(
		t, "plan", "update", "planned", third, "--cache-dir", t.TempDir(), "--permission-policy", policy,
	)
	if code != errcode.Invalid.Exit || !strings.Contains(text, "no-nodes") ||
		!strings.Contains(stderr, rbac.ErrPermissionDenied.Name) {
		t.Errorf("beyond the policy: exit code %d\n%s%s", code, text, stderr)
	}
}

// Neither the plan nor the manager takes a CRD of Kubernetes, of Crossplane or of xpkg, of
// which the cluster already has some.
//
// hardening: E8
func TestReservedDefinitions(t *testing.T) {
	s := newSuite(t)
	s.run(t, s.Config, controller.Permissions{})
	defined := []string{
		"compositions.apiextensions.crossplane.io", "providers.pkg.crossplane.io", "csidrivers.storage.k8s.io",
	}
	for _, group := range rbac.ReservedGroups() {
		if !strings.HasSuffix(group, ".k8s.io") {
			defined = append(defined, "things."+group)
		}
	}
	wait.Until(t, env.Limit, "the manager has installed its CRDs", func() (string, bool) {
		err := s.Client.Get(
			t.Context(), client.ObjectKey{Name: "compositions.apiextensions.crossplane.io"},
			&apiextensionsv1.CustomResourceDefinition{},
		)
		return fmt.Sprint(err), err == nil
	})
	for _, name := range defined {
		t.Run(name, func(t *testing.T) {
			ref := client.ObjectKey{Name: name}
			var before, after apiextensionsv1.CustomResourceDefinition
			err := s.Client.Get(t.Context(), ref, &before)
			if client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			existed := err == nil
			stream := provider("reserved", "", "", strings.Replace(crd(name, "Cluster"),
				"metadata: {", "metadata: {annotations: {api-approved.kubernetes.io: \"https://example.org\"}, ", 1))
			p := s.install(t, "reserved-"+strings.ReplaceAll(name, ".", "-"), stream)
			s.waits(t, p, rbac.ErrReservedDefinition.Name)
			if !existed {
				s.absent(t, &apiextensionsv1.CustomResourceDefinition{}, name)
			} else if err := s.Client.Get(t.Context(), ref, &after); err != nil || after.Generation != before.Generation ||
				len(after.OwnerReferences) > 0 {
				t.Errorf("%s was written: %v %v", name, err, after.OwnerReferences)
			}
			code, _, stderr := xpkg(t, "plan", "install", "provider", p.Spec.Package, "--cache-dir", t.TempDir())
			if code != errcode.Invalid.Exit || !strings.Contains(stderr, rbac.ErrReservedDefinition.Name) ||
				!strings.Contains(stderr, name) {
				t.Errorf("exit code %d: %s", code, stderr)
			}
		})
	}
}

// A Configuration cannot make Crossplane create a CRD in a reserved group either.
func TestReservedCompositeResourceDefinitions(t *testing.T) {
	s := newSuite(t)
	s.run(t, s.Config, controller.Permissions{})
	stream := `apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata:
  name: reserved
spec: {}
---
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: compositions.apiextensions.crossplane.io}
spec:
  group: apiextensions.crossplane.io
  names: {kind: Composition, plural: compositions}
  versions:
  - {name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object}}}
`
	ref := s.Push(t, "permissions/reserved-xrd", "v1", stream)
	code, _, stderr := xpkg(t, "plan", "install", "configuration", ref, "reserved-xrd", "--cache-dir", t.TempDir())
	if code != errcode.Invalid.Exit || !strings.Contains(stderr, rbac.ErrReservedDefinition.Name) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	p := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "reserved-xrd"}, Spec: v1.ConfigurationSpec{
		PackageSpec: v1.PackageSpec{Package: ref},
	}}
	s.EnsureCreated(t, p)
	wait.Until(t, env.Limit, "the Configuration is refused", func() (string, bool) {
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		ready := p.GetCondition(v1.TypeReady)
		return string(ready.Reason) + " " + ready.Message, string(ready.Reason) == rbac.ErrReservedDefinition.Name
	})
}
