// Package core proves that the manager and Crossplane core work side by side. Stand-ins make the calls of
// core, with the ServiceAccount of core.
package core

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

const namespace = "crossplane-system"

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// suite is an environment in which core may write packages, and a client with the user name of core.
type suite struct {
	*env.Env
	core client.Client
	// version is the version of core in its Deployments.
	version string
}

func newSuite(t *testing.T) *suite {
	t.Helper()
	e := env.New(t)
	account := types.NamespacedName{Namespace: namespace, Name: crossplane.DefaultAccount}
	e.EnsureCreated(t,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "crossplane"},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{"pkg.crossplane.io"}, Resources: []string{"*"}, Verbs: []string{"*"}},
				{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
			},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "crossplane"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "crossplane"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
		},
	)
	return &suite{Env: e, core: env.NewClient(t, e.As(crossplane.UserName(account))), version: "v2.4.0"}
}

// start runs the manager.
func (s *suite) start(t *testing.T) {
	t.Helper()
	o := env.OpenContent(t, t.TempDir(), fetch.Options{}).Options()
	o.Namespace, o.MakeNamespace = namespace, true
	s.RunManager(t, o)
}

// providerYAML returns a Provider with one CRD, whose description is the version.
func providerYAML(name, version string) string {
	return strings.NewReplacer("NAME", name, "VERSION", version).Replace(`apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: NAME}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.NAME.example.org}
spec:
  group: NAME.example.org
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {description: VERSION, type: object, x-kubernetes-preserve-unknown-fields: true}}}
`)
}

// install installs a Provider with one CRD, without waiting.
func (s *suite) install(t *testing.T, name string) *v1.Provider {
	t.Helper()
	ref := s.Push(t, "core/"+name, "v1.0.0", providerYAML(name, "first"))
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.ProviderSpec{PackageSpec: v1.PackageSpec{
		Package: ref,
	}}}
	s.Create(t, p)
	t.Cleanup(func() {
		s.Delete(t, p)
		s.WaitGone(t, p)
	})
	return p
}

// fence installs the fence, and waits until the API server enforces it: new policies take effect with a
// delay.
func (s *suite) fence(t *testing.T) {
	t.Helper()
	policy, binding := crossplane.Fence(types.NamespacedName{Namespace: namespace, Name: crossplane.DefaultAccount})
	s.Create(t, policy, binding)
	t.Cleanup(func() { s.CleanUp(t, policy, binding) })
	probe := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: v1.ConfigurationSpec{
		PackageSpec: v1.PackageSpec{Package: "registry.example.org/probe:v1"},
	}}
	wait.Until(t, env.Limit, "the fence is enforced", func() (string, bool) {
		err := s.core.Create(t.Context(), probe.DeepCopy(), client.DryRunAll)
		return errorText(err), apierrors.IsForbidden(err)
	})
}

func errorText(err error) string {
	if err == nil {
		return "the write was accepted"
	}
	return err.Error()
}

// deploy creates the Deployment of core, or of its RBAC manager.
func (s *suite) deploy(t *testing.T, name string, args ...string) *appsv1.Deployment {
	t.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: crossplane.DefaultAccount,
					Containers: []corev1.Container{{
						Name: "core", Image: "registry.example.org/crossplane:" + s.version, Args: args,
					}},
				},
			},
		},
	}
	s.Create(t, d)
	t.Cleanup(func() { s.CleanUp(t, d) })
	return d
}

// The fence denies core every write of the package API, statuses included, and lets its initialization and
// all other clients through.
func TestFenceDeniesCoreEveryWriteOfPackages(t *testing.T) {
	s := newSuite(t)
	s.start(t)
	p := s.install(t, "fenced")
	s.WaitReady(t, p)
	s.fence(t)

	denied := func(write string, err error) {
		t.Helper()
		// The guard of removals can answer first.
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "xpkg manages the packages") &&
			!strings.Contains(err.Error(), fence.RemovalsName) {
			t.Errorf("%s: got %s, want it denied", write, errorText(err))
		}
	}
	read := func() *v1.Provider {
		t.Helper()
		current := &v1.Provider{}
		if err := s.core.Get(t.Context(), client.ObjectKeyFromObject(p), current); err != nil {
			t.Fatal(err)
		}
		return current
	}
	change := func(change func(*v1.Provider)) *v1.Provider {
		t.Helper()
		current := read()
		change(current)
		return current
	}
	ctx := t.Context()
	denied("delete", s.core.Delete(ctx, p.DeepCopy()))
	denied("delete all", s.core.DeleteAllOf(ctx, &v1.ProviderRevision{}))
	denied("spec", s.core.Update(
		ctx, change(func(p *v1.Provider) { p.Spec.SkipDependencyResolution = !p.Spec.SkipDependencyResolution }),
	))
	denied("labels", s.core.Update(ctx, change(func(p *v1.Provider) { p.Labels = map[string]string{"a": "b"} })))
	denied("annotations", s.core.Update(ctx, change(func(p *v1.Provider) { p.Annotations = map[string]string{"a": "b"} })))
	denied("finalizers", s.core.Update(
		ctx, change(func(p *v1.Provider) { p.Finalizers = append(p.Finalizers, "revision.pkg.crossplane.io") }),
	))
	denied("owners", s.core.Update(ctx, change(func(p *v1.Provider) {
		p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "a",
		})
	})))
	denied("status", s.core.Status().Update(ctx, change(func(p *v1.Provider) { p.Status.Conditions = nil })))
	lock := &v1beta1.Lock{}
	if err := s.core.Get(ctx, types.NamespacedName{Name: v1beta1.LockName}, lock); err != nil {
		t.Fatal(err)
	}
	emptied := lock.DeepCopy()
	emptied.Packages = nil
	denied("the packages of the Lock", s.core.Update(ctx, emptied))

	if err := s.core.Patch(ctx, lock, client.RawPatch(
		types.MergePatchType, []byte(`{"apiVersion":"pkg.crossplane.io/v1beta1","kind":"Lock","metadata":{"name":"lock"}}`),
	)); err != nil {
		t.Errorf("a patch of the Lock that changes nothing, as the initialization of core makes it: %v", err)
	}
	if err := s.core.Update(ctx, read()); err != nil {
		t.Errorf("an update that changes nothing: %v", err)
	}
	// The initialization of core creates this object before each start, and ignores that it exists.
	config := func(name string) *v1beta1.DeploymentRuntimeConfig {
		return &v1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	if err := s.core.Create(ctx, config("default")); err != nil {
		t.Errorf("the default DeploymentRuntimeConfig: %v", err)
	}
	if err := s.core.Create(ctx, config("default")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the default DeploymentRuntimeConfig that exists: %s", errorText(err))
	}
	denied("another DeploymentRuntimeConfig", s.core.Create(ctx, config("other")))
	specified := config("default")
	specified.Spec.ServiceTemplate = &v1beta1.ServiceTemplate{}
	denied("a default DeploymentRuntimeConfig with a specification", s.core.Create(ctx, specified))
	denied("a deletion of the default DeploymentRuntimeConfig", s.core.Delete(ctx, config("default")))

	// Core reconciles packages all the same, and would record each time that it fails.
	about := func(apiVersion, kind string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Name: p.Name, Namespace: namespace}
	}
	event := func(of corev1.ObjectReference) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "core-"}, InvolvedObject: of,
			Reason: "UnpackPackage", Type: "Warning",
		}
	}
	newEvent := func(of corev1.ObjectReference) *eventsv1.Event {
		return &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "core-"}, Regarding: of, Reason: "UnpackPackage",
			Type:      "Warning",
			EventTime: metav1.NowMicro(), ReportingController: "core", ReportingInstance: "core-0", Action: "Reconcile",
		}
	}
	for kind, apiVersion := range map[string]string{
		"Provider": "pkg.crossplane.io/v1", "ProviderRevision": "pkg.crossplane.io/v1", "Lock": "pkg.crossplane.io/v1beta1",
	} {
		denied("an event about a "+kind, s.core.Create(ctx, event(about(apiVersion, kind))))
		denied("a new event about a "+kind, s.core.Create(ctx, newEvent(about(apiVersion, kind))))
	}
	other := about("apiextensions.crossplane.io/v1", "Composition")
	if err := errors.Join(s.core.Create(ctx, event(other)), s.core.Create(ctx, newEvent(other))); err != nil {
		t.Errorf("events about a Composition: %v", err)
	}
	env.Update(t, s.Env, read(), func(p *v1.Provider) { p.Annotations = map[string]string{"user": "allowed"} })
	if err := s.core.Get(ctx, client.ObjectKeyFromObject(p), &v1.Provider{}); err != nil {
		t.Errorf("a read of core: %v", err)
	}
}

// The manager writes nothing but statuses while an unfenced core runs in its namespace. The condition names
// the causes and the remedies, and the manager continues after they are carried out.
func TestManagerWaitsWhileAnUnfencedCoreRuns(t *testing.T) {
	lane.Full(t, "test/core.TestThereAndBack")
	s := newSuite(t)
	d := s.deploy(t, "crossplane", "core", "start")
	s.start(t)
	p := s.install(t, "unfenced")
	s.WaitPackage(t, p, "reports the unfenced core", func() bool {
		c := p.GetCondition(v1.TypeReady)
		return string(c.Reason) == crossplane.ErrForeignManager.Name && strings.Contains(c.Message, "may write packages")
	})
	revisions := &v1.ProviderRevisionList{}
	if err := s.Client.List(t.Context(), revisions, client.MatchingLabels{v1.LabelPackage: p.Name}); err != nil {
		t.Fatal(err)
	}
	if len(revisions.Items) != 0 {
		t.Errorf("the manager created %d revisions", len(revisions.Items))
	}
	s.fence(t)
	env.Update(t, s.Env, d, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Args = append(
			d.Spec.Template.Spec.Containers[0].Args, "--package-runtime=External",
		)
	})
	s.WaitReady(t, p)
}

// A fence that was changed no longer counts.
func TestManagerNoticesAChangedFence(t *testing.T) {
	s := newSuite(t)
	policy, binding := crossplane.Fence(types.NamespacedName{Namespace: namespace, Name: crossplane.DefaultAccount})
	policy.Spec.Validations[0].Expression = "true"
	s.Create(t, policy, binding)
	t.Cleanup(func() { s.CleanUp(t, policy, binding) })
	s.deploy(t, "crossplane", "core", "start", "--package-runtime=External")
	s.start(t)
	p := s.install(t, "weakened")
	s.WaitPackage(t, p, "reports the unfenced core", func() bool {
		return string(p.GetCondition(v1.TypeReady).Reason) == crossplane.ErrForeignManager.Name
	})
}
