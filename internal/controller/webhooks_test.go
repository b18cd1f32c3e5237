package controller_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/hook"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// withExternalRuntimes returns an environment in which the test reports the health
// of runtimes.
func withExternalRuntimes(t *testing.T) *testEnv {
	t.Helper()
	s := newEnv(t)
	s.options.Runtimes = runtime.Everywhere(runtime.External)
	namespaced(t, s)
	return s
}

// namespaced makes the namespace of programs, which outlives the test.
func namespaced(t *testing.T, s *testEnv) {
	t.Helper()
	err := s.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: controller.DefaultNamespace,
	}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// reportHealth sets the runtime health of the current revision of a package, as its
// operator would.
func reportHealth(t *testing.T, s *testEnv, p v1.Package, healthy v1.Condition) {
	t.Helper()
	wait.Until(t, limit, "the runtime health of "+p.GetName()+" is reported", func() (string, bool) {
		revs := s.Revisions(t, p)
		i := slices.IndexFunc(
			revs, func(rev v1.PackageRevision) bool { return rev.RevisionSpec().DesiredState == v1.RevisionActive },
		)
		if i < 0 {
			return "no active revision", false
		}
		revs[i].SetConditions(metav1.Now(), healthy)
		err := s.Client.Status().Update(t.Context(), revs[i])
		return fmt.Sprint(err), err == nil
	})
}

func secretOf(t *testing.T, s *testEnv, name string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := s.Client.Get(
		t.Context(), client.ObjectKey{Namespace: controller.DefaultNamespace, Name: name}, secret,
	); err != nil {
		t.Fatal(err)
	}
	return secret
}

// configurations returns the webhook configurations that a package has in the cluster.
func configurations(t *testing.T, s *testEnv, name string) (validating, mutating []client.Object) {
	t.Helper()
	for kind, list := range map[client.Object]*[]client.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: &validating,
		&admissionregistrationv1.MutatingWebhookConfiguration{}:   &mutating,
	} {
		err := s.Client.Get(t.Context(), client.ObjectKey{Name: "crossplane-provider-" + name}, kind)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if err == nil {
			*list = append(*list, kind)
		}
	}
	return validating, mutating
}

func untilConfigured(t *testing.T, s *testEnv, name string, want bool) {
	t.Helper()
	wait.Until(t, limit, fmt.Sprintf("%s has webhook configurations: %t", name, want), func() (string, bool) {
		v, m := configurations(t, s, name)
		return fmt.Sprint(len(v), len(m)), len(v) == len(m) && (len(v) == 1) == want
	})
}

// The webhooks of a runtime from install to uninstall: conversion has its address
// and CA at once, and admission configurations exist only while the runtime serves.
func TestWebhooksFollowTheirRuntime(t *testing.T) {
	const name, group = "hooked", "hooked.test"
	s := withExternalRuntimes(t)
	s.start(t)
	program := hook.Start(t, s.Client, controller.DefaultNamespace, name)
	r := newRegistry(t)
	p := env.NewProvider(name, pushed(t, r, name, hook.Stream(name, group, "v1")))
	s.CreateTemporary(t, p)

	s.WaitPackage(t, p, "waits for its runtime", func() bool {
		return strings.Contains(p.GetCondition(v1.TypeReady).Message, "RuntimeHealthy")
	})
	rev := s.Revisions(t, p)[0]
	checkCertificates(t, s, rev)
	d := newCRD()
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "things." + group}, d); err != nil {
		t.Fatal(err)
	}
	bundle := secretOf(t, s, name+"-tls-server").Data["ca.crt"]
	if got := d.Spec.Conversion.Webhook.ClientConfig; len(bundle) == 0 || string(got.CABundle) != string(bundle) ||
		got.Service == nil || got.Service.Name != name {
		t.Errorf("conversion by %+v", got)
	}
	if v, m := configurations(t, s, name); len(v)+len(m) > 0 {
		t.Error("admission webhooks of a runtime without reported health are called")
	}
	if err := s.Client.Create(t.Context(), hook.Thing(group, "v1", "bad-but-unchecked")); err != nil {
		t.Error(err)
	}
	converted := hook.Thing(group, "v2", "bad-but-unchecked")
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(converted), converted); err != nil ||
		program.Converted.Load() == 0 {
		t.Errorf("%d conversions, %v", program.Converted.Load(), err)
	}

	reportHealth(t, s, p, v1.RuntimeHealthy())
	untilSettled(t, s, p)
	untilConfigured(t, s, name, true)
	v, _ := configurations(t, s, name)
	called := v[0].(*admissionregistrationv1.ValidatingWebhookConfiguration).Webhooks[0].ClientConfig
	service, err := json.Marshal(called.Service)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"namespace":"crossplane-system","name":"hooked","path":"/validate","port":9443}`; string(
		service,
	) != want || string(called.CABundle) != string(bundle) {
		t.Errorf("admission by %s, which trusts\n%s", service, called.CABundle)
	}
	untilRefused(t, s, group)
	wait.Until(t, limit, "the mutating webhook is called", func() (string, bool) {
		good := hook.Thing(group, "v1", "good")
		err := s.Client.Create(t.Context(), good, client.DryRunAll)
		return fmt.Sprint(good, err), err == nil && good.GetLabels()["mutated"] == "yes"
	})
	var listed []string
	for _, o := range s.Revisions(t, p)[0].RevisionStatus().ObjectRefs {
		listed = append(listed, o.Kind)
		if o.UID == "" || o.Generation == 0 {
			t.Errorf("%s is listed as %+v", o.Name, o)
		}
	}
	slices.Sort(listed)
	if diff := cmp.Diff(
		[]string{"CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}, listed,
	); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}

	untilNothingPlanned(t, s, p)

	// A deleted configuration is installed again.
	if err := s.Client.Delete(t.Context(), v[0]); err != nil {
		t.Fatal(err)
	}
	untilConfigured(t, s, name, true)

	reportHealth(t, s, p, v1.RuntimeUnhealthy("it went away"))
	untilConfigured(t, s, name, false)
	eventually(t, "no webhook is called any more", func() bool {
		return s.Client.Create(t.Context(), hook.Thing(group, "v1", "bad"), client.DryRunAll) == nil
	})

	remove(t, s, p)
	for _, secret := range []string{name + "-tls-server", name + "-tls-client"} {
		wait.Until(t, limit, secret+" is deleted with its package", func() (string, bool) {
			err := s.Client.Get(
				t.Context(), client.ObjectKey{Namespace: controller.DefaultNamespace, Name: secret}, &corev1.Secret{},
			)
			return fmt.Sprint(err), apierrors.IsNotFound(err)
		})
	}
}

// untilRefused waits until the API server calls the webhook and applies its response.
func untilRefused(t *testing.T, s *testEnv, group string) {
	t.Helper()
	wait.Until(t, limit, "the validating webhook is called", func() (string, bool) {
		err := s.Client.Create(t.Context(), hook.Thing(group, "v1", "bad"), client.DryRunAll)
		return fmt.Sprint(err), err != nil && strings.Contains(err.Error(), "denied the request")
	})
}

// newPlanner returns a planner that reads the cluster and the registries as the CLI does.
func newPlanner(t *testing.T, s *testEnv) *planner.Planner {
	t.Helper()
	packages, err := cache.Open(filepath.Join(t.TempDir(), "planned"), cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	source := fetch.NewSource(fetch.Options{Store: packages.Store(), Names: packages, Remote: s.remote()})
	t.Cleanup(func() {
		source.Close()
		if err := packages.Close(); err != nil {
			t.Error(err)
		}
	})
	read, err := planner.NewCluster(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &planner.Planner{Reader: s.Client, Cluster: read, Source: source, Namespace: controller.DefaultNamespace}
}

// untilNothingPlanned waits until a plan of the installed version contains no
// change. A planner has no CA bundles, and accepts the ones of live objects.
func untilNothingPlanned(t *testing.T, s *testEnv, p v1.Package) {
	t.Helper()
	planning := newPlanner(t, s)
	wait.Until(t, limit, "nothing is left to do for "+p.GetName(), func() (string, bool) {
		planned, err := planning.Install(t.Context(), p, planner.Options{})
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%+v", planned.Objects.Changes), !planned.HasChanges()
	})
}

// checkCertificates checks the Secrets of a runtime, and the conditions about them.
func checkCertificates(t *testing.T, s *testEnv, rev v1.PackageRevision) {
	t.Helper()
	spec, status := rev.RuntimeSpec(), rev.RuntimeStatus()
	for _, c := range []struct{ spec, status *string }{{spec.TLSServerSecretName, status.TLSServerSecretName}, {
		spec.TLSClientSecretName, status.TLSClientSecretName,
	}} {
		if c.spec == nil || c.status == nil || *c.spec != *c.status {
			t.Fatalf("secrets %+v, of which there are %+v", spec, status)
		}
		secret := secretOf(t, s, *c.spec)
		for _, key := range []string{"tls.crt", "tls.key", "ca.crt"} {
			if len(secret.Data[key]) == 0 {
				t.Errorf("%s has no %s", *c.spec, key)
			}
		}
		if owner := metav1.GetControllerOf(secret); owner == nil || owner.Name != rev.GetName() ||
			len(secret.OwnerReferences) != 2 {
			t.Errorf("%s belongs to %+v", *c.spec, secret.OwnerReferences)
		}
	}
}

// A damaged Secret is repaired at once, and no certificate exists that the CA has not recorded.
func TestCertificatesAreRepaired(t *testing.T) {
	const name = "repaired"
	s := withExternalRuntimes(t)
	s.start(t)
	r := newRegistry(t)
	f := &v1.Function{ObjectMeta: metav1.ObjectMeta{Name: name}}
	f.Spec.Package = pushed(t, r, name, meta("Function", name, ""))
	s.CreateTemporary(t, f)
	reportHealth(t, s, f, v1.RuntimeHealthy())
	untilSettled(t, s, f)
	rev := s.Revisions(t, f)[0]
	if spec := rev.RuntimeSpec(); spec.TLSClientSecretName != nil || spec.TLSServerSecretName == nil {
		t.Errorf("a function without webhooks has %+v", spec)
	}
	secret := secretOf(t, s, name+"-tls-server")
	was := string(secret.Data["tls.crt"])
	env.Update(t, s.Env, secret, func(secret *corev1.Secret) { delete(secret.Data, "tls.key") })
	wait.Until(t, limit, "the certificate is issued anew", func() (string, bool) {
		data := secretOf(t, s, name+"-tls-server").Data
		return fmt.Sprint(len(data)), len(data["tls.key"]) > 0 && string(data["tls.crt"]) != was
	})
	if err := s.Client.Delete(t.Context(), secretOf(t, s, name+"-tls-server")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Secret is back", func() bool {
		return s.Client.Get(
			t.Context(), client.ObjectKey{Namespace: controller.DefaultNamespace, Name: name + "-tls-server"}, &corev1.Secret{},
		) == nil
	})
}

// Functions read their certificate once, so their pods are replaced when it changes. Providers read
// it again.
func TestFunctionsAreReplacedWithTheirCertificate(t *testing.T) {
	s, _, r := newDeploymentEnv(t)
	f := &v1.Function{ObjectMeta: metav1.ObjectMeta{Name: "replaced-function"}}
	f.Spec.Package = pushed(t, r, "replaced-function", meta("Function", "replaced-function", ""))
	p := env.NewProvider(
		"replaced-provider",
		pushed(t, r, "replaced-provider", provider("replaced-provider", crd("replaced.test", "Thing", "one"))),
	)
	for _, p := range []v1.Package{f, p} {
		s.CreateTemporary(t, p)
		untilSettled(t, s, p)
	}
	annotation := func(p v1.Package) string {
		d := &appsv1.Deployment{}
		if err := s.Client.Get(
			t.Context(), client.ObjectKey{Namespace: controller.DefaultNamespace, Name: p.PackageStatus().CurrentRevision}, d,
		); err != nil {
			t.Fatal(err)
		}
		return d.Spec.Template.Annotations["xpkg.dev/certificates"]
	}
	was := annotation(f)
	if was == "" || annotation(p) != "" {
		t.Fatalf("the pods of the function are of %q, those of the provider of %q", was, annotation(p))
	}
	for _, p := range []v1.Package{p, f} {
		secret := secretOf(t, s, p.GetName()+"-tls-server")
		env.Update(t, s.Env, secret, func(secret *corev1.Secret) { delete(secret.Data, "tls.crt") })
	}
	eventually(t, "the pods of the function are replaced", func() bool { return annotation(f) != was })
	untilSettled(t, s, f)
	if annotation(p) != "" {
		t.Error("the pods of the provider are replaced")
	}
}

// A runtime without certificates does not run, and the objects that the package had
// installed before stay.
func TestRuntimeWithoutCertificatesDoesNotRun(t *testing.T) {
	const name = "taken"
	s := withExternalRuntimes(t)
	s.start(t)
	s.CreateTemporary(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: controller.DefaultNamespace, Name: name + "-tls-server"},
		StringData: map[string]string{"password": "secret"},
	})
	r := newRegistry(t)
	p := env.NewProvider(name, pushed(t, r, name, provider(name, crd("taken.test", "Thing", "one"))))
	s.CreateTemporary(t, p)
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "CertificateSecretTaken")
	if err := s.Client.Get(
		t.Context(), client.ObjectKey{Name: "things.taken.test"}, newCRD(),
	); !apierrors.IsNotFound(err) {
		t.Errorf("installed without its certificates: %v", err)
	}
	if data := secretOf(t, s, name+"-tls-server").Data; len(data) != 1 {
		t.Errorf("the foreign Secret has %d keys", len(data))
	}
}

// The CA is rotated twice while objects are written, validated, mutated and converted
// continuously, each time over a new connection, and no call fails. A package without
// webhooks is not written, and a package whose certificate has another issuer does not
// block the rotation.
func TestRotationFailsNoCall(t *testing.T) {
	const name, group = "rotated", "rotated.test"
	s := withExternalRuntimes(t)
	s.options.CertificateOverlap = 3 * time.Second
	s.start(t)
	program := hook.Start(t, s.Client, controller.DefaultNamespace, name)
	r := newRegistry(t)
	p := env.NewProvider(name, pushed(t, r, name, hook.Stream(name, group, "v1")))
	plain := env.NewProvider(
		"unconcerned", pushed(t, r, "unconcerned", provider("unconcerned", crd("unconcerned.test", "Thing", "one"))),
	)
	s.CreateTemporary(t, foreign(t, "other-issuer"))
	theirs := env.NewProvider(
		"other-issuer", pushed(t, r, "other-issuer", hook.Stream("other-issuer", "other-issuer.test", "v1")),
	)
	for _, p := range []*v1.Provider{p, plain, theirs} {
		s.CreateTemporary(t, p)
		reportHealth(t, s, p, v1.RuntimeHealthy())
		untilSettled(t, s, p)
	}
	untilConfigured(t, s, name, true)
	if err := s.Client.Create(t.Context(), hook.Thing(group, "v1", "stored")); err != nil {
		t.Fatal(err)
	}
	untilRefused(t, s, group)
	before := newCRD()
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "things.unconcerned.test"}, before); err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var calls atomic.Int64
	var callers sync.WaitGroup
	finish := func() {
		stop()
		callers.Wait()
	}
	t.Cleanup(finish)
	for _, call := range []func(i int) error{
		func(i int) error {
			return s.Client.Create(ctx, hook.Thing(group, "v1", fmt.Sprintf("x-%d", i)), client.DryRunAll)
		},
		func(int) error {
			converted := hook.Thing(group, "v2", "stored")
			return s.Client.Get(ctx, client.ObjectKeyFromObject(converted), converted)
		},
	} {
		callers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := call(i); err != nil && ctx.Err() == nil {
					t.Errorf("call %d: %v", i, err)
				}
				calls.Add(1)
			}
		})
	}
	for rotation := range 2 {
		rotate(t, s)
		if rotation == 0 && !program.Called() {
			t.Error("the runtime was not called meanwhile")
		}
	}
	finish()
	untilNothingPlanned(t, s, p)
	t.Logf(
		"%d calls: %d validated, %d changed, %d converted", calls.Load(), program.Admitted.Load(), program.Mutated.Load(),
		program.Converted.Load(),
	)
	after := newCRD()
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "things.unconcerned.test"}, after); err != nil {
		t.Fatal(err)
	}
	if before.Generation != after.Generation || before.ResourceVersion != after.ResourceVersion {
		t.Errorf("an object without webhooks was written: generation %d and then %d", before.Generation, after.Generation)
	}
}

// rotate requests a new CA, and waits until it is the only one.
func rotate(t *testing.T, s *testEnv) {
	t.Helper()
	const root = "crossplane-root-ca"
	was := string(secretOf(t, s, root).Data["tls.crt"])
	patch := client.RawPatch(
		"application/merge-patch+json", []byte(`{"metadata":{"annotations":{"xpkg.dev/rotate":"now"}}}`),
	)
	if err := s.Client.Patch(
		t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: controller.DefaultNamespace, Name: root}}, patch,
	); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, 2*limit, "the new CA is the only one", func() (string, bool) {
		secret := secretOf(t, s, root)
		return fmt.Sprint(len(secret.Data), secret.Annotations),
			len(secret.Data) == 2 && string(secret.Data["tls.crt"]) != was
	})
}

// The webhooks of a runtime without a Service are not installed, even if the runtime is
// reported as healthy: they would reject every write.
func TestWebhooksWaitForAService(t *testing.T) {
	const name, group = "unled", "unled.test"
	s := withExternalRuntimes(t)
	s.start(t)
	r := newRegistry(t)
	p := env.NewProvider(name, pushed(t, r, name, hook.Stream(name, group, "v1")))
	s.CreateTemporary(t, p)
	reportHealth(t, s, p, v1.RuntimeHealthy())
	untilSettled(t, s, p)
	if v, m := configurations(t, s, name); len(v)+len(m) > 0 {
		t.Error("webhooks of a runtime without a Service are called")
	}
	hook.Start(t, s.Client, controller.DefaultNamespace, name)
	annotate(t, s, s.Revisions(t, p)[0], `{"metadata":{"annotations":{"look":"again"}}}`)
	untilConfigured(t, s, name, true)
}

// An upgrade to a version with a conversion webhook does not wait for its runtime,
// although objects of the former version exist and the webhook does not serve.
//
// hardening: E10, I-7
func TestUpgradeDoesNotWaitForConversionWebhooks(t *testing.T) {
	const name, group = "unreachable", "unreachable.test"
	s := withExternalRuntimes(t)
	s.start(t)
	r := newRegistry(t)
	p := env.NewProvider(name, pushed(t, r, name, provider(name, crd(group, "Thing", "one"))))
	s.CreateTemporary(t, p)
	reportHealth(t, s, p, v1.RuntimeHealthy())
	untilSettled(t, s, p)
	if err := s.Client.Create(t.Context(), hook.Thing(group, "v1", "stored")); err != nil {
		t.Fatal(err)
	}
	next, _ := r.push(t, "acme/"+name+":v2", hook.Stream(name, group, "v2"))
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = next })
	wait.Until(t, limit, "the objects of the new version are established", func() (string, bool) {
		revs := s.Revisions(t, p)
		c := revs[len(revs)-1].GetCondition(v1.TypeRevisionHealthy)
		return fmt.Sprintf("%d %+v", len(revs), c), len(revs) == 2 && c.Status == corev1.ConditionTrue
	})
	converted := hook.Thing(group, "v1", "stored")
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(converted), converted); err != nil {
		t.Errorf("an object in the version that is stored: %v", err)
	}
	other := hook.Thing(group, "v2", "stored")
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(other), other); err == nil {
		t.Error("an object was converted without a runtime")
	}
	if err := s.Client.Delete(t.Context(), converted); err != nil {
		t.Error(err)
	}
	remove(t, s, p)
}

// A provider is uninstalled although its conversion webhook does not serve, and the API server cannot read its custom
// resources.
func TestAProviderWithoutConversionIsUninstalled(t *testing.T) {
	const name, group = "unconverted", "unconverted.test"
	s := withExternalRuntimes(t)
	s.options.ConversionPatience = time.Millisecond
	s.start(t)
	r := newRegistry(t)
	p := env.NewProvider(name, pushed(t, r, name, provider(name, crd(group, "Thing", "one"))))
	s.CreateTemporary(t, p)
	reportHealth(t, s, p, v1.RuntimeHealthy())
	untilSettled(t, s, p)
	if err := s.Client.Create(t.Context(), hook.Thing(group, "v1", "stored")); err != nil {
		t.Fatal(err)
	}
	next, _ := r.push(t, "acme/"+name+":v2", hook.Stream(name, group, "v2"))
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = next })
	wait.Until(t, limit, "the API server uses the webhook", func() (string, bool) {
		d := newCRD()
		err := s.Client.Get(t.Context(), client.ObjectKey{Name: "things." + group}, d)
		return fmt.Sprint(err), err == nil && d.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	})
	answerDeletion(t, s, p, "cascade=1") // They cannot be counted.
	if err := s.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, limit, "the CRD and the package are deleted", func() (string, bool) {
		d := newCRD()
		err := s.Client.Get(t.Context(), client.ObjectKey{Name: "things." + group}, d)
		ofPackage := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), &v1.Provider{})
		return fmt.Sprintf("%v %v %+v", err, ofPackage, d.Status.Conditions),
			apierrors.IsNotFound(err) && apierrors.IsNotFound(ofPackage)
	})
}

// foreign returns the Secret of a package's server as cert-manager fills it, with an
// authority of its own.
func foreign(t *testing.T, pkg string) *corev1.Secret {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true,
		DNSNames:              []string{pkg + "." + controller.DefaultNamespace + ".svc"},
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: controller.DefaultNamespace, Name: v1.TLSServerSecretName(pkg),
			Annotations: map[string]string{"cert-manager.io/certificate-name": pkg},
		},
		Data: map[string][]byte{"tls.crt": certificate, "ca.crt": certificate, "tls.key": pem.EncodeToMemory(&pem.Block{
			Type: "PRIVATE KEY", Bytes: private,
		})},
	}
}
