package program_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/up"
)

// Published providers work as processes: several with the same ports at once, with webhooks, an update and a rollback
// with a managed resource, and an uninstall that deletes the managed resource and its external object.
func TestRealProviders(t *testing.T) {
	lane.Full(t, "test/program.TestScripts", "test/program.TestInstallPredictsRefusedRuntimes")
	w := newWorkshop(t)
	dir := w.newData(t, "real")
	begun := w.run(t.Context(), "", "up", "--data-dir", dir, "--port", "0", "--registry-port", "0", "--detach")
	if begun.err != nil {
		t.Fatalf("xpkg up: %v\n%s", begun.err, begun.stderr)
	}
	t.Cleanup(func() { w.run(context.Background(), "", "down", "--data-dir", dir) })
	report, err := up.Status(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := plane{w, report.State}
	c := newClient(t, p.Kubeconfig)

	nop := p.publishModule(t, "provider-nop", "v0.5.0")
	kubernetes := p.publishModule(t, "provider-kubernetes", "v1.0.0")
	p.publishModule(t, "provider-kubernetes", "v1.2.1")
	http := p.publishModule(t, "provider-http", "v1.0.14")

	// Whatever the provider does with objects of the cluster, it does with the permissions of this ServiceAccount.
	account := &v1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}}
	account.Spec.ServiceAccountTemplate = &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.ObjectMeta{
		Name: new("provider-kubernetes"),
	}}
	create(t, c, account)
	create(t, c, object(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: provider-kubernetes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: `+bootstrap.DefaultNamespace+`, name: provider-kubernetes}]
`))
	p.xpkg(t, "install", "provider", nop, "provider-nop", "--wait", "2m")
	p.xpkg(t, "install", "provider", kubernetes, "provider-kubernetes", "--runtime-config", "kubernetes", "--wait", "2m")
	p.xpkg(t, "install", "provider", http, "provider-http", "--wait", "2m")

	until(t, "the webhooks of provider-nop are installed", func(ctx context.Context) (string, bool) {
		nop := &v1.Provider{}
		err := c.Get(ctx, client.ObjectKey{Name: "provider-nop"}, nop)
		ready := nop.GetCondition(v1.TypeReady)
		return fmt.Sprintf("%+v, %v", ready, err),
			err == nil && ready.Status == corev1.ConditionTrue && ready.Reason != v1.ReasonWebhooksNotInstalled
	})
	resource := object(t, `
apiVersion: nop.crossplane.io/v1alpha1
kind: ClusterNopResource
metadata: {name: nop}
spec:
  forProvider:
    conditionAfter: [{time: 0s, conditionType: Ready, conditionStatus: "True"}]
`)
	create(t, c, resource)
	untilManaged(t, c, resource)

	create(t, c, object(t, `
apiVersion: kubernetes.crossplane.io/v1alpha1
kind: ProviderConfig
metadata: {name: local}
spec: {credentials: {source: InjectedIdentity}}
`))
	managed := object(t, `
apiVersion: kubernetes.crossplane.io/v1alpha2
kind: Object
metadata: {name: real-namespace}
spec:
  providerConfigRef: {name: local}
  forProvider: {manifest: {apiVersion: v1, kind: Namespace}}
`)
	create(t, c, managed)
	untilManaged(t, c, managed)
	p.xpkg(t, "update", "provider-kubernetes", "v1.2.1", "--yes", "--wait", "2m")
	change(t, c, managed)
	untilManaged(t, c, managed)
	p.xpkg(t, "rollback", "provider-kubernetes", "--yes", "--wait", "2m")
	change(t, c, managed)
	untilManaged(t, c, managed)

	p.xpkg(t, "uninstall", "provider-kubernetes", "provider-nop", "provider-http", "--yes", "--wait", "2m")
	until(t, "the external object is deleted", func(ctx context.Context) (string, bool) {
		err := c.Get(ctx, client.ObjectKey{Name: "real-namespace"}, object(t, "{apiVersion: v1, kind: Namespace}"))
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
}

// publishModule builds the package and the program of a provider from its Go module, and returns its reference.
func (p plane) publishModule(t *testing.T, name, version string) string {
	t.Helper()
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/crossplane-contrib/"+name+
		"@"+version)
	download.Dir = t.TempDir()
	out, err := download.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", download, err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	// The folder of a module cannot be written.
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(module.Dir)); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(file, 0o755)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(
		t.Context(), p.program(), "build", "-f", "package", "--embed-go-program", "./cmd/provider", "-o", "built.xpkg",
	)
	build.Dir, build.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	ref := p.Registry + "/crossplane-contrib/" + name + ":" + version
	p.xpkg(t, "push", "-f", filepath.Join(dir, "built.xpkg"), ref)
	return ref
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func create(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// change changes the policies of a managed resource, so that its provider must reconcile it.
func change(t *testing.T, c client.Client, o *unstructured.Unstructured) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	changed := o.DeepCopy()
	policies := []any{"*"}
	if before, _, err := unstructured.NestedSlice(o.Object, "spec", "managementPolicies"); err == nil && len(before) == 1 {
		policies = []any{"Observe", "Create", "Update", "Delete", "LateInitialize"}
	}
	if err := unstructured.SetNestedSlice(changed.Object, policies, "spec", "managementPolicies"); err != nil {
		t.Fatal(err)
	}
	if err := c.Patch(t.Context(), changed, client.MergeFrom(o)); err != nil {
		t.Fatal(err)
	}
}

// untilManaged waits until a provider has reconciled a managed resource at its generation, and the resource is ready.
func untilManaged(t *testing.T, c client.Client, o *unstructured.Unstructured) {
	t.Helper()
	until(t, o.GetKind()+" "+o.GetName()+" is reconciled", func(ctx context.Context) (string, bool) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err.Error(), false
		}
		conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
		reached := map[any]bool{}
		for _, entry := range conditions {
			condition := entry.(map[string]any)
			observed, _ := condition["observedGeneration"].(int64)
			reached[condition["type"]] = condition["status"] == "True" &&
				(condition["type"] != "Synced" || observed == o.GetGeneration())
		}
		return fmt.Sprint(conditions, err), reached["Synced"] && reached["Ready"]
	})
}
