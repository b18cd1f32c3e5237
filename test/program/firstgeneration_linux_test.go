package program_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
)

// firstController is the program of a package of the first generation: it prints its arguments and variables, and runs
// until it is stopped.
const firstController = `package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	fmt.Println("controller", os.Args[1:], os.Getenv("MODE"), os.Getenv("POD_NAMESPACE"))
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
}
`

// TestFirstGenerationRunsAsAProcess proves that the image of a package of the first generation with a runtime runs as a
// process of a local control plane, with the arguments and variables of its Deployment, from a Provider and from a
// ClusterPackageInstall; and that a package with templates, which needs a node, is refused there, of which a plan
// warns.
func TestFirstGenerationRunsAsAProcess(t *testing.T) {
	lane.Full(t, "test/program.TestScripts")
	w := newWorkshop(t)
	w.env = append(w.env, program.GoFolders(t)...)
	p := w.withRuntimes(t, "first", "--first-generation")
	c := newClient(t, p.Kubeconfig)
	work := t.TempDir()
	write(t, filepath.Join(work, "controller", "go.mod"), "module controller\n\ngo 1.24\n")
	write(t, filepath.Join(work, "controller", "main.go"), firstController)
	for _, name := range []string{"provided", "installed"} {
		tree := writeFirst(t, work, name, "install.yaml", `apiVersion: apps/v1
kind: Deployment
metadata: {name: controller}
spec:
  selector: {matchLabels: {app: controller}}
  template:
    metadata: {labels: {app: controller}}
    spec:
      containers:
      - name: controller
        args: [--sync=1m]
        env:
        - {name: MODE, value: fast}
        - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
`)
		ref := p.publishFirst(t, tree, "first/"+name, "--embed-go-program", filepath.Join(work, "controller"))
		if name == "provided" {
			p.xpkg(t, "install", "provider", ref, name)
		} else {
			createFirst(t, c, name, ref)
		}
	}

	tree := writeFirst(
		t, work, "templates", "behavior.yaml",
		"source: {path: chart}\ncrd: {kind: Thing, apiVersion: templates.first.test/v1}\nengine: {type: helm3, controllerImage: first/engine:v1.0.0}\n",
	)
	p.publishFirst(t, tree, "first/engine")
	ref := p.publishFirst(t, tree, "first/templates")
	plan := p.run(t.Context(), p.Kubeconfig, "plan", "install", "provider", ref, "templates")
	if plan.code != 2 || !strings.Contains(plan.stdout, "The package has templates. A Provider installs its CRDs only") {
		t.Errorf("the plan ends with %d and has no warning:\n%s%s", plan.code, plan.stdout, plan.stderr)
	}
	createFirst(t, c, "templates", ref)
	untilReady(t, c, "templates", func(ready v1.Condition) bool {
		return ready.Reason == "NotForProcesses" && strings.Contains(ready.Message, "has the init container") &&
			strings.Contains(ready.Message, "xpkg bootstrap --first-generation")
	})
	untilReady(t, c, "installed", func(ready v1.Condition) bool { return ready.Status == corev1.ConditionTrue })
	untilHealthy(t, c, "provided")
	for _, name := range []string{"provided", "installed"} {
		until(t, "the process of "+name+" prints its arguments and variables", func(ctx context.Context) (string, bool) {
			r := p.run(ctx, p.Kubeconfig, "logs", "provider/"+name, "--data-dir", p.DataDir)
			return r.stdout + r.stderr, strings.Contains(r.stdout, "controller [--sync=1m] fast crossplane-system")
		})
	}
	p.uninstallUsed(t, c, "provided")
}

// uninstallUsed checks the message of an uninstall of a Provider that a paused PackageInstall uses: the Provider is
// deleted, and may be created again.
func (p plane) uninstallUsed(t *testing.T, c client.Client, name string) {
	t.Helper()
	shared := v1.NewPackage(v1.ProviderKind)
	shared.SetName(name)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(shared), shared); err != nil {
		t.Fatal(err)
	}
	before := shared.DeepCopyObject().(v1.Package)
	shared.SetAnnotations(map[string]string{revision.AnnotationNamespacedInstalls: revision.AllowInstalls})
	if err := c.Patch(t.Context(), shared, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	in := packagesv1alpha1.NewInstall(packagesv1alpha1.PackageInstallKind)
	in.SetNamespace("default")
	in.SetName(name)
	in.InstallSpec().Package = shared.PackageSpec().Package
	if err := c.Create(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	until(t, "the PackageInstall uses the Provider", func(ctx context.Context) (string, bool) {
		err := c.Get(ctx, client.ObjectKeyFromObject(in), in)
		ready := in.GetCondition(v1.TypeReady)
		return fmt.Sprintf("%+v %v", ready, err), in.InstallStatus().Provider == name && ready.Reason == "ClusterScopeRefused"
	})
	paused := in.DeepCopyObject().(client.Object)
	in.SetAnnotations(map[string]string{v1.AnnotationPaused: "true"})
	if err := c.Patch(t.Context(), in, client.MergeFrom(paused)); err != nil {
		t.Fatal(err)
	}
	r := p.run(t.Context(), p.Kubeconfig, "uninstall", "provider/"+name, "--yes", "--wait", "9s")
	if r.code != 11 || !strings.Contains(r.stderr, "error: NotRemovedInTime: provider/"+name+
		" is deleted, and a PackageInstall still uses it: whether a manager creates it again is not known yet") ||
		!strings.Contains(r.stderr, "Run `xpkg list` later, or allow at least 20s with --wait.") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// writeFirst writes a package of the first generation that defines the kind Thing of NAME.first.test, and returns its
// folder.
func writeFirst(t *testing.T, work, name, file, text string) string {
	t.Helper()
	dir := filepath.Join(work, name, ".registry")
	write(t, filepath.Join(dir, "app.yaml"), "title: "+name+"\npackageType: Stack\npermissionScope: Cluster\n")
	write(t, filepath.Join(dir, file), text)
	write(
		t, filepath.Join(dir, "resources", "thing.crd.yaml"),
		strings.TrimPrefix(publish.Definition(name+".first.test", "Thing", "one"), "---\n"),
	)
	return filepath.Dir(dir)
}

// publishFirst builds a package from a folder with more flags, pushes it, and returns its reference.
func (p plane) publishFirst(t *testing.T, folder, repository string, flags ...string) string {
	t.Helper()
	file, ref := filepath.Join(t.TempDir(), "first.xpkg"), p.Registry+"/"+repository+":v1.0.0"
	p.xpkg(t, append([]string{"build", folder, "-o", file}, flags...)...)
	p.xpkg(t, "push", "-f", file, ref)
	return ref
}

// createFirst creates a ClusterPackageInstall.
func createFirst(t *testing.T, c client.Client, name, ref string) {
	t.Helper()
	in := packagesv1alpha1.NewInstall(packagesv1alpha1.ClusterPackageInstallKind)
	in.SetNamespace(bootstrap.DefaultNamespace)
	in.SetName(name)
	in.InstallSpec().Package = ref
	if err := c.Create(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// untilReady waits for a condition Ready of a ClusterPackageInstall.
func untilReady(t *testing.T, c client.Client, name string, holds func(ready v1.Condition) bool) {
	t.Helper()
	in := &packagesv1alpha1.ClusterPackageInstall{}
	until(t, "the ClusterPackageInstall "+name+" has its condition", func(ctx context.Context) (string, bool) {
		if err := c.Get(ctx, client.ObjectKey{Namespace: bootstrap.DefaultNamespace, Name: name}, in); err != nil {
			return err.Error(), false
		}
		ready := in.GetCondition(v1.TypeReady)
		return ready.Message, holds(ready)
	})
}
