// Package firstgeneration proves that the install objects of the first generation of packages work on a real API
// server, and that namespaces are isolated from each other.
package firstgeneration

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen/setup"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// managerNamespace is the namespace of the manager.
const managerNamespace = "crossplane-system"

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// suite is an API server with a manager that serves the API of the first generation.
type suite struct {
	*env.Env
	audit *env.Audit // of the manager
	// manager runs with the options.
	manager *env.Manager
	options controller.Options
}

// newSuite starts a manager. Change may change its options.
func newSuite(t *testing.T, change func(*suite, *controller.Options)) *suite {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server: skipped with -short")
	}
	s := &suite{Env: env.New(t), audit: &env.Audit{}}
	s.EnsureCreated(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: managerNamespace}})
	s.StartKubelet(t, managerNamespace)
	o := env.OpenContent(t, t.TempDir(), fetch.Options{}).Options()
	o.Config, o.Namespace, o.Settle = s.audit.Wrap(s.managerAccount(t)), managerNamespace, time.Second
	o.Runtimes, o.Permissions = runtime.Everywhere(runtime.Deployment), &controller.Permissions{}
	o.FirstGeneration = setup.Extension(firstgen.Options{Enabled: true})
	if change != nil {
		change(s, &o)
	}
	s.manager, s.options = s.RunManager(t, o), o
	return s
}

// managerAccount returns a client configuration with the permissions that the manifests of the manager grant.
func (s *suite) managerAccount(t *testing.T) *rest.Config {
	t.Helper()
	o := bootstrap.Options{Version: "test", Namespace: managerNamespace, FirstGeneration: true, PackageGroups: []string{
		rbacv1.APIGroupAll,
	}}
	s.EnsureCreated(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: managerNamespace, Name: bootstrap.Name,
	}})
	for _, role := range o.Roles() {
		s.EnsureCreated(t, role)
	}
	return s.ServiceAccount(t, managerNamespace, bootstrap.Name)
}

// restart restarts the manager with other options.
func (s *suite) restart(t *testing.T, change func(*controller.Options)) {
	t.Helper()
	s.manager.Stop()
	change(&s.options)
	s.manager = s.RunManager(t, s.options)
}

// newNamespace creates a namespace in which Deployments run.
func (s *suite) newNamespace(t *testing.T, name string) string {
	t.Helper()
	s.EnsureCreated(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	s.StartKubelet(t, name)
	return name
}

// content returns a package as the conversion of a first-generation package writes it. It defines the kind Thing.
func content(name, version, scope string) string {
	return strings.NewReplacer("NAME", name, "VERSION", version, "SCOPE", scope).Replace(`apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata:
  name: NAME
  annotations:
    meta.xpkg.dev/first-generation: "0.1.0"
    meta.xpkg.dev/first-generation-scope: SCOPE
    meta.xpkg.dev/title: Title of NAME
    meta.xpkg.dev/summary: One line
    meta.xpkg.dev/category: Database
    meta.xpkg.dev/version: VERSION
    meta.xpkg.dev/owners: Jane <jane@example.org>
    meta.xpkg.dev/icon-data-uri: data:image/svg+xml;base64,PHN2Zy8+
    meta.xpkg.dev/default-runtime: '{"imageInPackageRegistry":true,"env":[{"name":"POD_NAMESPACE","fieldPath":"metadata.namespace"}]}'
spec:
  permissionRequests:
  - {apiGroups: [NAME.example.org], resources: [things, things/status, things/finalizers], verbs: ["*"]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.NAME.example.org}
spec:
  group: NAME.example.org
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {description: VERSION, type: object, x-kubernetes-preserve-unknown-fields: true}}}
`)
}

// publish pushes a package, and returns its reference.
func (s *suite) publish(t *testing.T, name, version, scope string) string {
	t.Helper()
	return s.Push(t, "first/"+name, version, content(name, version, scope))
}

// newInstall returns an install object.
func newInstall(kind, namespace, name, reference string) packagesv1alpha1.Install {
	in := packagesv1alpha1.NewInstall(kind)
	in.SetNamespace(namespace)
	in.SetName(name)
	in.InstallSpec().Package = reference
	return in
}

// share installs a Provider whose CRDs namespaces use.
func (s *suite) share(t *testing.T, name, reference string) *v1.Provider {
	t.Helper()
	p := env.NewProvider(name, reference)
	p.Annotations = map[string]string{revision.AnnotationNamespacedInstalls: revision.AllowInstalls}
	s.Create(t, p)
	s.WaitReady(t, p)
	return p
}

// object is an object with conditions.
type object interface {
	client.Object
	v1.Conditioned
}

// waitFor waits until the condition Ready of an object has a status and a reason. An empty reason stands for any.
func (s *suite) waitFor(t *testing.T, o object, status corev1.ConditionStatus, reason string) {
	t.Helper()
	wait.Until(t, env.Limit, fmt.Sprintf("%s has Ready=%s %s", o.GetName(), status, reason), func() (string, bool) {
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err.Error(), false
		}
		ready := o.GetCondition(v1.TypeReady)
		return fmt.Sprintf("%+v", ready), (status == "" || ready.Status == status) &&
			(reason == "" || string(ready.Reason) == reason) && ready.ObservedGeneration == o.GetGeneration()
	})
}

// waitDefinitionGone waits until a CRD does not exist.
func (s *suite) waitDefinitionGone(t *testing.T, name string) {
	t.Helper()
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(definitionKind)
	crd.SetName(name)
	s.WaitGone(t, crd)
}

// record returns the record of an install object.
func (s *suite) record(t *testing.T, in packagesv1alpha1.Install) *packagesv1alpha1.Package {
	t.Helper()
	p := &packagesv1alpha1.Package{}
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(in), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// checkAccount fails unless a record has the annotations of the ServiceAccount, where the document has them and where
// Crossplane v0.12 has them.
func checkAccount(t *testing.T, record *packagesv1alpha1.Package) {
	t.Helper()
	for _, a := range []*packagesv1alpha1.ServiceAccountOptions{
		record.Spec.ServiceAccount, record.Spec.Controller.ServiceAccount,
	} {
		if a == nil || a.Annotations["iam"] != "special" {
			t.Errorf("the record has the settings %+v of the ServiceAccount", a)
		}
	}
}

// deployment returns the Deployment of a Package.
func (s *suite) deployment(t *testing.T, namespace, name string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, d); err != nil {
		t.Fatal(err)
	}
	return d
}
