package program_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// TestInstallPredictsRefusedRuntimes proves that the documented path of build, push and install ends before the
// first write on a control plane with process runtimes, if the package contains no program or its configuration
// needs a node: in a plan and in an install, also as the first command on a control plane. The manager refuses
// the same package with the same code.
func TestInstallPredictsRefusedRuntimes(t *testing.T) {
	w := newWorkshop(t)
	p := w.withRuntimes(t, "refused")
	ref := p.publish(t, filepath.Join("..", "..", "examples", "provider-hello", "package"), "examples/provider-hello")
	p.expectRefusedInstall(
		t, ref, 4, "NoProgram", "has neither an entrypoint nor a command",
		"Rebuild the package with --embed-go-program, --embed-runtime-image",
		"`xpkg down` and `xpkg up --detach --package-runtime=Provider/hello=None`",
	)

	c := newClient(t, p.Kubeconfig)
	config := &v1beta1.DeploymentRuntimeConfig{}
	if err := c.Get(
		t.Context(), client.ObjectKey{Name: v1.DefaultRuntimeConfigName}, config,
	); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	config.Name = v1.DefaultRuntimeConfigName
	config.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{Spec: &appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{}, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "setup", Image: "setup"}}, Containers: []corev1.Container{},
		}},
	}}
	write := c.Create
	if config.ResourceVersion != "" {
		write = func(ctx context.Context, o client.Object, _ ...client.CreateOption) error { return c.Update(ctx, o) }
	}
	if err := write(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	p.expectRefusedInstall(
		t, ref, 13, "NotForProcesses", "the runtime configuration of provider/hello has the init container setup",
		"Remove this from the DeploymentRuntimeConfig",
	)

	hello := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	hello.Spec.Package = ref
	if err := c.Create(t.Context(), hello); err != nil {
		t.Fatal(err)
	}
	until(t, "the manager refuses the runtime", func(ctx context.Context) (string, bool) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(hello), hello); err != nil {
			return err.Error(), false
		}
		for _, condition := range hello.Status.Conditions {
			if strings.Contains(
				condition.Message, "NotForProcesses: the runtime configuration of provider/hello has the init container setup",
			) {
				return "", true
			}
		}
		return hello.GetCondition(v1.TypeHealthy).Message, false
	})
}

// expectRefusedInstall checks that plans and installs of the Provider hello fail with a code and texts, and that
// none of them installs it.
func (p plane) expectRefusedInstall(t *testing.T, ref string, exit int, code string, texts ...string) {
	t.Helper()
	for _, args := range [][]string{
		{"plan", "install", "provider", ref, "hello"}, {"install", "provider", ref, "hello", "--wait", "1m"},
		{"install", "provider", ref, "hello"}, {"install", "provider", ref, "hello", "--dry-run"},
	} {
		r := p.run(t.Context(), p.Kubeconfig, args...)
		for _, want := range append([]string{"error: " + code + ": "}, texts...) {
			if r.code != exit || !strings.Contains(r.stderr, want) {
				t.Errorf("xpkg %s: exit code %d, want %d and %q\n%s", strings.Join(args, " "), r.code, exit, want, r.stderr)
			}
		}
		if p.installed(t, "hello") {
			t.Errorf("xpkg %s installed the package", strings.Join(args, " "))
		}
	}
	plan := p.run(t.Context(), p.Kubeconfig, "plan", "install", "provider", ref, "hello")
	if !strings.Contains(plan.stdout, "The runtime is refused; nothing will be changed.") {
		t.Errorf("the plan has no summary of the refusal:\n%s", plan.stdout)
	}
	plan = p.run(t.Context(), p.Kubeconfig, "plan", "install", "provider", ref, "hello", "-o", "json")
	if !strings.Contains(plan.stdout, `"code": "`+code+`"`) {
		t.Errorf("the JSON has no code:\n%s", plan.stdout)
	}
}
