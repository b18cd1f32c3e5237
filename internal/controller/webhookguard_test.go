package controller_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/hook"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// probeOften makes the manager of a test notice quickly that a webhook stops serving.
const probeOften = 50 * time.Millisecond

func TestWebhooksAreInstalledOnlyWhenTheirPortServesTheRightCertificate(t *testing.T) {
	const name, group = "proven", "proven.test"
	s := withExternalRuntimes(t)
	s.options.WebhookProbe = probeOften
	s.start(t)
	l := hook.Listen(t)
	address := l.Addr().(*net.TCPAddr)
	hook.Expose(t, s.Client, controller.DefaultNamespace, name, address)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r := newRegistry(t)
	p := env.NewProvider(name, pushed(t, r, name, hook.Stream(name, group, "v1")))
	s.CreateTemporary(t, p)
	reportHealth(t, s, p, v1.RuntimeHealthy())
	untilSettled(t, s, p)
	rev := s.Revisions(t, p)[0]
	waitRuntimeReason(t, s, rev, "connection refused")
	waitReady(t, s, p, v1.ReasonWebhooksNotInstalled)
	if v, m := configurations(t, s, name); len(v)+len(m) > 0 {
		t.Fatal("the API server calls webhooks although nothing listens")
	}

	other, err := tls.Listen("tcp", address.String(), &tls.Config{
		Certificates: []tls.Certificate{selfSigned(t)}, MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		t.Fatal(err)
	}
	go accept(other)
	waitRuntimeReason(t, s, rev, "x509: certificate")
	if v, m := configurations(t, s, name); len(v)+len(m) > 0 {
		t.Fatal("the API server calls webhooks whose certificate it does not trust")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}

	again, err := net.Listen("tcp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	program := hook.Serve(t, s.Client, controller.DefaultNamespace, name, again)
	untilConfigured(t, s, name, true)
	untilRefused(t, s, group)
	waitReady(t, s, p, v1.ReasonHealthy)

	// The runtime is still reported to be healthy.
	program.Close()
	untilConfigured(t, s, name, false)
	waitReady(t, s, p, v1.ReasonWebhooksNotInstalled)
	eventually(t, "the API server calls no webhook", func() bool {
		return s.Client.Create(t.Context(), hook.Thing(group, "v1", "bad"), client.DryRunAll) == nil
	})
	remove(t, s, p)
}

// waitReady waits until a package is ready with a reason, which is WebhooksNotInstalled while its runtime does not
// serve its webhooks.
func waitReady(t *testing.T, s *testEnv, p v1.Package, reason v1.ConditionReason) {
	t.Helper()
	s.WaitPackage(t, p, "is ready with the reason "+string(reason), func() bool {
		ready := p.GetCondition(v1.TypeReady)
		return ready.Status == corev1.ConditionTrue && ready.Reason == reason
	})
}

// waitRuntimeReason waits for the event with the reason why webhooks are not installed.
func waitRuntimeReason(t *testing.T, s *testEnv, rev v1.PackageRevision, reason string) {
	t.Helper()
	wait.Until(t, limit, "an event names the reason "+reason, func() (string, bool) {
		// A change of the revision makes the manager try again at once.
		annotate(t, s, rev, fmt.Sprintf(`{"metadata":{"annotations":{"look":%q}}}`, time.Now().String()))
		var all eventsv1.EventList
		if err := s.Client.List(t.Context(), &all); err != nil {
			return err.Error(), false
		}
		var notes []string
		for _, e := range all.Items {
			if e.Regarding.Name == rev.GetName() && e.Reason == "WebhooksNotInstalled" {
				notes = append(notes, e.Note)
			}
		}
		text := strings.Join(notes, "\n")
		return text, strings.Contains(text, reason)
	})
}

// accept performs the TLS handshake of every connection until the listener is closed.
func accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			_ = conn.(*tls.Conn).HandshakeContext(context.Background())
			_ = conn.Close()
		}()
	}
}

// selfSigned returns a certificate that no CA bundle of a package trusts.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	secret := foreign(t, "unrelated")
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// A manager that was killed leaves a webhook that blocks every write, of its own Lease
// too. The next one starts nevertheless.
func TestManagerStartsInAClusterThatAPackageBlocks(t *testing.T) {
	s := withExternalRuntimes(t)
	blockCluster(t, s)
	s.options.LeaderElection = &leader.Election{Identity: "blocked", Name: "blocked"}
	s.start(t)
	eventually(t, "the cluster is writable", func() bool { return writable(t, s.Client) == nil })
}

func TestManagerLeavesWebhooksOfOthersAlone(t *testing.T) {
	s := withExternalRuntimes(t)
	s.options.WebhookProbe = probeOften
	owner := ownerOfBlock(t, s)
	unowned := everything("unowned", plan.ContentDigestAnnotation, "sha256:1")
	foreign := everything("of-another-manager", "any", "any", owner)
	for _, c := range []*admissionregistrationv1.ValidatingWebhookConfiguration{unowned, foreign} {
		c.Webhooks[0].Rules[0].APIGroups = []string{"unused.test"}
		s.CreateTemporary(t, c)
	}
	s.start(t)
	// The marker fails like the others, and goes.
	marker := everything("marker", plan.ContentDigestAnnotation, "sha256:1", owner)
	marker.Webhooks[0].Rules[0].APIGroups = []string{"unused.test"}
	s.CreateTemporary(t, marker)
	eventually(t, "the marker is deleted", func() bool {
		return apierrors.IsNotFound(s.Client.Get(
			t.Context(), client.ObjectKeyFromObject(marker), &admissionregistrationv1.ValidatingWebhookConfiguration{},
		))
	})
	for _, c := range []client.Object{unowned, foreign} {
		if err := s.Client.Get(
			t.Context(), client.ObjectKeyFromObject(c), &admissionregistrationv1.ValidatingWebhookConfiguration{},
		); err != nil {
			t.Errorf("%s: %v", c.GetName(), err)
		}
	}
}

// ownerOfBlock creates a package that the manager does not touch.
func ownerOfBlock(t *testing.T, s *testEnv) metav1.OwnerReference {
	t.Helper()
	s.start(t)() // The first manager installs the API of packages.
	p := env.NewProvider("blocks", "nowhere.test/blocks:v1")
	p.Annotations = map[string]string{v1.AnnotationPaused: "true"}
	s.CreateTemporary(t, p)
	return metav1.OwnerReference{APIVersion: v1.GroupVersion.String(), Kind: v1.ProviderKind, Name: p.Name, UID: p.UID}
}

// everything returns a configuration that covers every write and that nothing serves.
func everything(
	name, annotation, value string, owners ...metav1.OwnerReference,
) *admissionregistrationv1.ValidatingWebhookConfiguration {
	all := []string{"*"}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotation: value}, OwnerReferences: owners},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "everything.blocks.test", AdmissionReviewVersions: []string{"v1"},
			SideEffects:   new(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy: new(admissionregistrationv1.Fail),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
				Namespace: "nowhere", Name: "gone", Port: new(int32(9443)),
			}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule:       admissionregistrationv1.Rule{APIGroups: all, APIVersions: all, Resources: []string{"*/*"}},
			}},
		}},
	}
}

// blockCluster makes every write of the API server fail.
func blockCluster(t *testing.T, s *testEnv) {
	t.Helper()
	s.CreateTemporary(t, everything("blocks-everything", plan.ContentDigestAnnotation, "sha256:1", ownerOfBlock(t, s)))
	eventually(t, "the cluster is blocked", func() bool {
		err := writable(t, s.Client)
		return err != nil && strings.Contains(err.Error(), "failed calling webhook")
	})
}

func writable(t *testing.T, c client.Client) error {
	t.Helper()
	return c.Create(
		t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe"}}, client.DryRunAll,
	)
}

// Nothing of a package is installed while its webhooks cover resources that it does not define
// without consent. The consent is to these rules; without it they go again.
func TestWebhooksOutsideOfThePackagesGroupsNeedConsent(t *testing.T) {
	const name, group = "outside", "outside.test"
	s := withExternalRuntimes(t)
	s.start(t)
	hook.Start(t, s.Client, controller.DefaultNamespace, name)
	r := newRegistry(t)
	p := env.NewProvider(name, pushed(t, r, name, hook.Outside(name, group, "nothing", "CREATE")))
	s.CreateTemporary(t, p)
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, webhooks.ErrNotAllowed.Name)
	rev := s.Revisions(t, p)[0]
	if got, want := strings.Join(
		rev.RevisionStatus().UnallowedWebhooks, ";",
	), "validate CREATE core/nothing"; got != want {
		t.Errorf("the status names %q, want %q", got, want)
	}
	if !strings.Contains(p.GetCondition(v1.TypeHealthy).Message, "`xpkg approve provider/outside`") {
		t.Errorf("the message names no command: %s", p.GetCondition(v1.TypeHealthy).Message)
	}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "things." + group}, newCRD()); !apierrors.IsNotFound(err) {
		t.Errorf("a part of the package is installed: %v", err)
	}

	allow := func(rules string) {
		annotate(t, s, p, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, webhooks.AnnotationAllowed, rules))
	}
	allow("validate CREATE core/others")
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, webhooks.ErrNotAllowed.Name)
	allow("validate CREATE core/nothing")
	reportHealth(t, s, p, v1.RuntimeHealthy())
	untilSettled(t, s, p)
	untilValidating(t, s, name, true)

	// A version whose webhooks cover more waits, and the one before it goes on.
	next, _ := r.push(t, "acme/"+name+":v2", hook.Outside(name, group, "nothing", "CREATE, DELETE"))
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = next })
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "validate CREATE,DELETE core/nothing")
	live := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "crossplane-provider-" + name}, live); err != nil {
		t.Fatal(err)
	}
	if owner := metav1.GetControllerOf(live); owner == nil || owner.Name != name ||
		len(live.Webhooks[0].Rules[0].Operations) != 1 {
		t.Errorf("the webhook configuration belongs to %v with %v", owner, live.Webhooks[0].Rules)
	}
	allow("validate CREATE,DELETE core/nothing")
	reportHealth(t, s, p, v1.RuntimeHealthy())
	untilSettled(t, s, p)

	allow("")
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, webhooks.ErrNotAllowed.Name)
	untilValidating(t, s, name, false)

	// A pause does not keep them.
	allow("validate CREATE,DELETE core/nothing")
	reportHealth(t, s, p, v1.RuntimeHealthy())
	untilSettled(t, s, p)
	untilValidating(t, s, name, true)
	for _, rev := range s.Revisions(t, p) {
		annotate(t, s, rev, `{"metadata":{"annotations":{"crossplane.io/paused":"true"}}}`)
	}
	allow("")
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, webhooks.ErrNotAllowed.Name)
	untilValidating(t, s, name, false)
	remove(t, s, p)
}

func untilValidating(t *testing.T, s *testEnv, name string, want bool) {
	t.Helper()
	wait.Until(t, limit, fmt.Sprintf("%s has a validating webhook: %t", name, want), func() (string, bool) {
		v, _ := configurations(t, s, name)
		return fmt.Sprint(len(v)), (len(v) == 1) == want
	})
}

// installCoveringEverything installs a package with a webhook for every write, which its runtime serves.
func installCoveringEverything(t *testing.T, s *testEnv, name, group string) (*hook.Program, *v1.Provider, *registry) {
	t.Helper()
	program := hook.Start(t, s.Client, controller.DefaultNamespace, name)
	r := newRegistry(t)
	p := env.NewProvider(name, pushed(t, r, name, hook.Outside(name, group, "*/*", "*")))
	p.Annotations = map[string]string{webhooks.AnnotationAllowed: "validate * */*/*"}
	s.CreateTemporary(t, p)
	reportHealth(t, s, p, v1.RuntimeHealthy())
	untilValidating(t, s, name, true)
	return program, p, r
}

// A package that covers every write, and whose runtime stops serving, cannot keep the user
// from writing, nor from deleting the package.
func TestPackageThatBlocksEveryWriteCanBeDeleted(t *testing.T) {
	const name, group = "blocking", "blocking.test"
	s := withExternalRuntimes(t)
	s.options.WebhookProbe = probeOften
	s.start(t)
	program, p, _ := installCoveringEverything(t, s, name, group)
	program.Close()
	untilValidating(t, s, name, false)
	eventually(t, "the cluster is writable", func() bool { return writable(t, s.Client) == nil })
	remove(t, s, p)
}

// A package whose runtime serves, and denies every request that it may see, cannot keep the user from updating
// and deleting the package, nor the manager from reporting the state of packages.
func TestPackageThatDeniesEveryWriteCanBeDeleted(t *testing.T) {
	const name, group = "denying", "denying.test"
	s := withExternalRuntimes(t)
	s.start(t)
	program, p, r := installCoveringEverything(t, s, name, group)
	t.Cleanup(func() { program.Denies.Store(false) })
	program.Denies.Store(true)
	eventually(t, "the webhook denies writes", func() bool {
		err := writable(t, s.Client)
		return err != nil && strings.Contains(err.Error(), "denied the request")
	})

	history := int64(7)
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.RevisionHistoryLimit = &history })
	lease := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}}
	lease.SetNamespace("default")
	lease.SetName("denied")
	if err := s.Client.Create(t.Context(), lease, client.DryRunAll); err != nil {
		t.Errorf("a Lease is denied: %v", err)
	}

	// A version without the webhook is installed although the webhook denies its CRD.
	stream, _, _ := strings.Cut(hook.Outside(name, group, "*/*", "*"), "---\napiVersion: admissionregistration")
	next, _ := r.push(t, "acme/"+name+
		":v2", strings.Replace(stream, "plural: things", "plural: things, shortNames: [th]", 1))
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = next })
	untilActivated(t, s, p)
	reportHealth(t, s, p, v1.RuntimeHealthy())
	eventually(t, "the cluster is writable", func() bool { return writable(t, s.Client) == nil })
	env.Update(
		t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = pushed(t, r, name, hook.Outside(name, group, "*/*", "*")) },
	)
	program.Denies.Store(false)
	untilActivated(t, s, p)
	reportHealth(t, s, p, v1.RuntimeHealthy())
	untilValidating(t, s, name, true)
	program.Denies.Store(true)

	remove(t, s, p)
	eventually(t, "the cluster is writable", func() bool { return writable(t, s.Client) == nil })
}

// untilActivated waits until the revision of the version that a package asks for is active.
func untilActivated(t *testing.T, s *testEnv, p *v1.Provider) {
	t.Helper()
	wait.Until(t, limit, p.Spec.Package+" is active", func() (string, bool) {
		seen := ""
		for _, rev := range s.Revisions(t, p) {
			spec := rev.RevisionSpec()
			seen += fmt.Sprintf("%s %s; ", spec.Image, spec.DesiredState)
			if spec.Image == p.Spec.Package && spec.DesiredState == v1.RevisionActive {
				return "", true
			}
		}
		return seen, false
	})
}

// While the definitions of a deleted package wait for a finalizer, its webhooks are gone.
func TestUninstallDeletesWebhooksFirst(t *testing.T) {
	const name, group = "leaving", "leaving.test"
	s := withExternalRuntimes(t)
	s.start(t)
	hook.Start(t, s.Client, controller.DefaultNamespace, name)
	r := newRegistry(t)
	p := env.NewProvider(name, pushed(t, r, name, hook.Stream(name, group, "v1")))
	s.CreateTemporary(t, p)
	reportHealth(t, s, p, v1.RuntimeHealthy())
	untilConfigured(t, s, name, true)
	thing := hook.Thing(group, "v1", "kept")
	thing.SetFinalizers([]string{"leaving.test/kept"})
	if err := s.Client.Create(t.Context(), thing); err != nil {
		t.Fatal(err)
	}
	answerDeletion(t, s, p, "cascade=1")
	if err := s.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	untilConfigured(t, s, name, false)
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "things." + group}, newCRD()); err != nil {
		t.Errorf("the CRD was deleted first: %v", err)
	}
	annotate(t, s, thing, `{"metadata":{"finalizers":null}}`)
	remove(t, s, p)
}
