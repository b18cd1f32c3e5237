package cli

import (
	"bytes"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Without consent, the move from core shows its plan and changes nothing.
func TestMigrateFromCoreAsks(t *testing.T) {
	const namespace = "migrated"
	cfg, kubeconfig := cluster.Start(t), cluster.Kubeconfig(t)
	c, err := client.New(cfg, client.Options{Scheme: bootstrapScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	migrate := func(args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		args = append([]string{
			"xpkg", "migrate", "from-core", "--namespace", namespace, "--image", "registry.example.org/xpkg:v1", "--kubeconfig",
			kubeconfig,
		}, args...)
		code = Main(t.Context(), args, &terminal.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
		return code, out.String(), errs.String()
	}
	if code, _, errs := migrate(); code != errcode.NotFound.Exit || !strings.Contains(errs, migration.ErrNoCore.Name) {
		t.Errorf("without core: exit code %d, %s", code, errs)
	}
	if code, _, errs := bootstrapped(
		t, "--apply", "--take-over", "--kubeconfig", kubeconfig, "--namespace", namespace,
	); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	labels := map[string]string{"app": "crossplane"}
	core := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "crossplane",
	}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			ServiceAccountName: "crossplane", Containers: []corev1.Container{{
				Name: "crossplane", Image: "registry.example.org/crossplane:v2", Args: []string{"core", "start"},
			}},
		}},
	}}
	if err := c.Create(t.Context(), core); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteDeployments(t, c, namespace, "crossplane", "xpkg") })

	code, plan, errs := migrate("--dry-run")
	if code != int(terminal.ChangesPending) || !strings.Contains(plan, "1. Deny Crossplane the writes of packages\n") ||
		!strings.Contains(plan, "\nnote: ") {
		t.Errorf("--dry-run: exit code %d, %s%s", code, plan, errs)
	}
	if code, out, _ := migrate("--dry-run", "-o", "json"); code != int(terminal.ChangesPending) ||
		!strings.Contains(out, `"title": "Install the manager"`) {
		t.Errorf("--dry-run -o json: exit code %d, %s", code, out)
	}
	code, out, errs := migrate()
	want := "`xpkg migrate from-core --namespace migrated --image registry.example.org/xpkg:v1 --kubeconfig " +
		kubeconfig + " --yes`"
	if code != errcode.Usage.Exit || out != "" || !strings.HasPrefix(errs, plan) || !strings.Contains(errs, want) {
		t.Errorf("without consent: exit code %d, %q\n%s", code, out, errs)
	}
	before := core.ResourceVersion
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(core), core); err != nil ||
		len(core.Spec.Template.Spec.Containers[0].Args) != 2 {
		t.Errorf("core was changed from %s: %+v, %v", before, core, err)
	}
	// There is no node for core here.
	code, out, errs = migrate("--yes", "--wait", "2s")
	if code != errcode.Timeout.Exit || !strings.HasPrefix(out, "done: Deny Crossplane") ||
		!strings.Contains(errs, migration.ErrUnfinished.Name) || !strings.Contains(errs, "it continues with this step") {
		t.Errorf("with core that does not start: exit code %d, %s%s", code, out, errs)
	}
	if _, plan, _ = migrate("--dry-run"); !strings.Contains(plan, "1. Deny Crossplane the writes of packages (done)\n") {
		t.Errorf("after the first step:\n%s", plan)
	}
}
