//go:build unix

package program_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// A webhook of a package that covers every write and that nothing serves is in the database
// when the control plane starts.
func TestUpBecomesReadyAlthoughAPackageBlocksEveryWrite(t *testing.T) {
	lane.Full(t, "test/program.TestScripts")
	w := newWorkshop(t)
	dir := w.newData(t, "blocked")
	state, err := w.detach(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := plane{w, state}
	c := newClient(t, p.Kubeconfig)
	if err := admissionregistrationv1.AddToScheme(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	if err := corev1.AddToScheme(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	owner := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "blocks", Annotations: map[string]string{
		v1.AnnotationPaused: "true",
	}}}
	owner.Spec.Package = p.Registry + "/blocks/everything:v1.0.0"
	if err := c.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	block := blocksEverything(owner)
	if err := c.Create(t.Context(), block); err != nil {
		t.Fatal(err)
	}
	until(t, "every write fails", func(ctx context.Context) (string, bool) {
		err := writeSomething(ctx, c)
		return fmt.Sprint(err), err != nil && strings.Contains(err.Error(), "failed calling webhook")
	})
	// From now on it is one that the manager wrote, and deletes after several probes.
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+
		plan.ContentDigestAnnotation+`":"sha256:1"}}}`))
	if err := c.Patch(t.Context(), block, patch); err != nil {
		t.Fatal(err)
	}
	// The manager deletes the configuration after several failed probes; an orderly stop could take as long.
	if err := syscall.Kill(state.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}

	again, err := w.detach(dir)
	if err != nil {
		t.Fatal(err)
	}
	p = plane{w, again}
	log, err := os.ReadFile(filepath.Join(dir, "logs", "controlplane.log"))
	if err != nil || !strings.Contains(string(log), "deleted a webhook configuration") {
		t.Errorf("the start deleted no webhook configuration: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(block), block); !apierrors.IsNotFound(err) {
		t.Errorf("the webhook configuration is still there: %v", err)
	}
	until(t, "writes succeed", func(ctx context.Context) (string, bool) {
		err := writeSomething(ctx, c)
		return fmt.Sprint(err), err == nil
	})
	ref := p.publish(t, providerFolder(t, "unblocked", "unblocked.test", 1), "blocked/unblocked")
	p.xpkg(t, "install", "provider", ref, "unblocked", "--wait", "2m")
	p.xpkg(t, "down", "--data-dir", p.DataDir)
}

// writeSomething writes in a dry run, for which the API server calls webhooks too.
func writeSomething(ctx context.Context, c client.Client) error {
	return c.Create(
		ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe"}}, client.DryRunAll,
	)
}

func blocksEverything(owner *v1.Provider) *admissionregistrationv1.ValidatingWebhookConfiguration {
	all := []string{"*"}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "blocks", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: v1.GroupVersion.String(), Kind: v1.ProviderKind, Name: owner.Name, UID: owner.UID},
		}},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "everything.blocks.test", AdmissionReviewVersions: []string{"v1"},
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), FailurePolicy: new(admissionregistrationv1.Fail),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Namespace: "nowhere", Name: "gone", Port: new(int32(9443))},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule:       admissionregistrationv1.Rule{APIGroups: all, APIVersions: all, Resources: []string{"*/*"}},
			}},
		}},
	}
}
