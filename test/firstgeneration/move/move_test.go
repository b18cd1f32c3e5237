// Package move proves that a cluster with a package manager of the first generation is moved to the manager without
// losing a custom resource. Objects stand in for what the former package manager created.
package move

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/migration/firstgeneration"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/fault"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const namespace = "crossplane-system"

// objects is the number of custom resources of each package.
const objects = 10

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// former is a cluster with the objects of a former package manager.
type former struct {
	*env.Env
	team string
	// crds has the UIDs of the CRDs, and things the UIDs and versions of the custom resources.
	crds, things map[string]string
	overlap      func() string
	packages     []string
}

// newFormer creates a cluster with a ClusterPackageInstall, and a StackInstall of the earlier API group in another
// namespace.
func newFormer(t *testing.T, name string) *former {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server: skipped with -short")
	}
	f := &former{Env: env.New(t), team: name + "-team", crds: map[string]string{}, things: map[string]string{}}
	for _, ns := range []string{namespace, f.team} {
		f.StartKubelet(t, ns)
	}
	f.installFormerAPI(t)
	f.deploy(t, namespace, "crossplane-package-manager", nil)
	f.install(t, packagesv1alpha1.Group, "ClusterPackageInstall", "Package", namespace, name, "Cluster")
	f.install(t, packagesv1alpha1.EarlierGroup, "StackInstall", "Stack", f.team, name+"stack", "Namespaced")
	f.watchRuntimes(t)
	return f
}

// installFormerAPI installs the CRDs of both groups as another program does, and removes traces of earlier tests.
func (f *former) installFormerAPI(t *testing.T) {
	t.Helper()
	for _, k := range []struct{ group, kind string }{
		{packagesv1alpha1.Group, "ClusterPackageInstall"}, {packagesv1alpha1.Group, "PackageInstall"},
		{packagesv1alpha1.Group, "Package"},
		{packagesv1alpha1.Group, "StackDefinition"}, {packagesv1alpha1.EarlierGroup, "StackDefinition"},
		{packagesv1alpha1.EarlierGroup, "ClusterStackInstall"}, {packagesv1alpha1.EarlierGroup, "StackInstall"},
		{packagesv1alpha1.EarlierGroup, "Stack"},
	} {
		plural := strings.ToLower(k.kind) + "s"
		want := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + "." + k.group}}
		want.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
			Group: k.group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: k.kind, ListKind: k.kind +
				"List", Plural: plural, Singular: strings.ToLower(k.kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1alpha1", Served: true, Storage: true, Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
			}},
		}
		live := &apiextensionsv1.CustomResourceDefinition{}
		err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(want), live)
		if err == nil {
			want.ResourceVersion = live.ResourceVersion
			err = f.Client.Update(t.Context(), want)
		} else {
			err = f.Client.Create(t.Context(), want)
		}
		if err != nil {
			t.Fatal(err)
		}
		wait.Until(t, env.Limit, want.Name+" is served", func() (string, bool) {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(schema.GroupVersionKind{Group: k.group, Version: "v1alpha1", Kind: k.kind + "List"})
			err := f.Client.List(t.Context(), list)
			return fmt.Sprint(err), err == nil
		})
	}
}

// deploy creates a Deployment with running pods.
func (f *former) deploy(t *testing.T, ns, name string, owner *metav1.OwnerReference) {
	t.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	if owner != nil {
		d.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	d.Spec.Selector, d.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "controller", Image: "registry.invalid/former@sha256:" + strings.Repeat("0", 64),
	}}
	f.EnsureCreated(t, d)
	// An earlier test has stopped it.
	if err := f.Client.Patch(
		t.Context(), d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`)),
	); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, env.Limit, name+" runs", func() (string, bool) {
		err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d)
		return fmt.Sprintf("%+v %v", d.Status, err), err == nil && d.Status.ReadyReplicas == 1
	})
}

// install creates an install object with everything that the former package manager created for it, and custom
// resources.
func (f *former) install(t *testing.T, group, kind, record, ns, name, scope string) {
	t.Helper()
	ref := f.Push(t, "former/"+name, "v1.0.0", content(name, scope))
	in := object(group, kind, ns, name)
	in.SetFinalizers([]string{"finalizer." + group})
	in.Object["spec"] = map[string]any{"package": strings.TrimPrefix(ref, f.Registry+"/"), "source": f.Registry}
	r := object(group, record, ns, name)
	r.SetFinalizers([]string{"finalizer." + group})
	r.Object["spec"] = map[string]any{
		"title":                     name,
		"customresourcedefinitions": []any{map[string]any{"apiVersion": name + ".example.org/v1", "kind": "Thing"}},
		"controller":                map[string]any{"deployment": map[string]any{"name": name, "spec": map[string]any{}}},
	}
	f.Create(t, in)
	r.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: in.GetAPIVersion(), Kind: kind, Name: name, UID: in.GetUID(),
	}})
	f.Create(t, r)
	owner := metav1.OwnerReference{
		APIVersion: r.GetAPIVersion(), Kind: record, Name: name, UID: r.GetUID(), Controller: new(true),
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns, Name: name + "-former", OwnerReferences: []metav1.OwnerReference{owner},
	}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "stack:" + ns + ":" + name +
		":system", Labels: map[string]string{
		"core.crossplane.io/parent-namespace": ns, "core.crossplane.io/parent-name": name,
	}}}
	f.Create(t, account, role)
	f.deploy(t, ns, name, &owner)
	f.createDefinition(t, name)
	f.packages = append(f.packages, name)
	for i := range objects {
		u := object(name+".example.org", "Thing", ns, fmt.Sprintf("thing-%d", i))
		u.SetAPIVersion(name + ".example.org/v1")
		u.SetFinalizers([]string{"example.org/external"})
		f.Create(t, u)
		f.things[name+"/"+u.GetName()] = string(u.GetUID()) + " " + u.GetResourceVersion()
		t.Cleanup(func() {
			u.SetFinalizers(nil)
			u.SetResourceVersion("")
			_ = f.Client.Patch(
				context.Background(), u, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)),
			)
		})
	}
}

// createOwn creates a Package of a user with everything that the former package manager created for it.
func (f *former) createOwn(t *testing.T, name string) *packagesv1alpha1.Package {
	t.Helper()
	p := object(packagesv1alpha1.Group, packagesv1alpha1.PackageKind, f.team, name)
	p.SetFinalizers([]string{"finalizer." + packagesv1alpha1.Group, "example.org/kept"})
	image := f.Push(t, "former/"+name, "v1.0.0", content(name, "Namespaced"))
	pod := map[string]any{"containers": []any{map[string]any{"name": "controller", "image": image}}}
	p.Object["spec"] = map[string]any{
		"customresourcedefinitions": []any{map[string]any{"apiVersion": f.packages[0] + ".example.org/v1", "kind": "Thing"}},
		"controller": map[string]any{"deployment": map[string]any{
			"name": name + "-controller", "spec": map[string]any{"template": map[string]any{"spec": pod}},
		}},
	}
	f.Create(t, p)
	owner := metav1.OwnerReference{
		APIVersion: p.GetAPIVersion(), Kind: p.GetKind(), Name: name, UID: p.GetUID(), Controller: new(true),
	}
	meta := metav1.ObjectMeta{Namespace: f.team, Name: name, OwnerReferences: []metav1.OwnerReference{owner}}
	f.Create(t, &corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}})
	f.deploy(t, f.team, name+"-controller", &owner)
	return &packagesv1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: f.team, Name: name, UID: p.GetUID()}}
}

// checkOwn checks that a Package of a user stays, with a controller of the manager alone.
func (f *former) checkOwn(t *testing.T, p *packagesv1alpha1.Package) {
	t.Helper()
	uid := p.UID
	wait.Until(t, env.Limit, p.Name+" is ready", func() (string, bool) {
		err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p)
		return fmt.Sprintf("%+v %v", p.Status, err), err == nil && p.GetCondition("Ready").Status == corev1.ConditionTrue
	})
	if p.UID != uid || !slices.Equal(p.Finalizers, []string{"example.org/kept"}) {
		t.Errorf("the Package of a user has the finalizers %v", p.Finalizers)
	}
	for _, o := range []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name + "-controller"}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}},
	} {
		if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) &&
			o.GetDeletionTimestamp() == nil {
			t.Errorf("%T %s is left", o, o.GetName())
		}
	}
	p.Finalizers = nil
	if err := f.Client.Patch(
		t.Context(), p, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)),
	); err != nil {
		t.Fatal(err)
	}
}

// createDefinition creates the CRD of a package, as the former package manager labels it: an owner in a namespace is
// not valid for a CRD.
func (f *former) createDefinition(t *testing.T, name string) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name:   "things." + name + ".example.org",
		Labels: map[string]string{"app.kubernetes.io/managed-by": "package-manager", "core.crossplane.io/parent-name": name},
	}}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: name + ".example.org", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{
			Kind: "Thing", ListKind: "ThingList", Plural: "things", Singular: "thing",
		},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: new(true),
			}},
		}},
	}
	f.Create(t, crd)
	f.crds[crd.Name] = string(crd.UID)
	wait.Until(t, env.Limit, crd.Name+" is served", func() (string, bool) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: name + ".example.org", Version: "v1", Kind: "ThingList"})
		err := f.Client.List(t.Context(), list)
		return fmt.Sprint(err), err == nil
	})
}

func object(group, kind, ns, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: kind})
	u.SetNamespace(ns)
	u.SetName(name)
	return u
}

// content returns the package of a name.
func content(name, scope string) string {
	return strings.NewReplacer("NAME", name, "SCOPE", scope).Replace(`apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata:
  name: NAME
  annotations:
    meta.xpkg.dev/first-generation-scope: SCOPE
    meta.xpkg.dev/title: NAME
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
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`)
}

// watchRuntimes records whether a controller of the former package manager and one of the manager have pods at the same
// time.
func (f *former) watchRuntimes(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w, err := f.Client.Watch(ctx, &corev1.PodList{})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	done, found := make(chan struct{}), ""
	go func() {
		defer close(done)
		alive := map[string]map[bool]int{} // by package: pods of the manager, and others
		for e := range w.ResultChan() {
			p, ok := e.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			pkg, isNew := p.Labels["pkg.crossplane.io/provider"], true
			if pkg == "" {
				pkg, isNew = p.Labels["app"], false
			}
			if alive[pkg] == nil {
				alive[pkg] = map[bool]int{}
			}
			switch e.Type {
			case "ADDED":
				alive[pkg][isNew]++
			case "DELETED":
				alive[pkg][isNew]--
			}
			if alive[pkg][true] > 0 && alive[pkg][false] > 0 {
				found = pkg
			}
		}
	}()
	f.overlap = func() string {
		w.Stop()
		cancel()
		<-done
		return found
	}
	t.Cleanup(func() { f.overlap() })
}

// startManager runs the manager in this process once a condition holds.
func (f *former) startManager(t *testing.T, holds func(context.Context) bool) {
	t.Helper()
	o := env.OpenContent(t, t.TempDir(), fetch.Options{}).Options()
	o.Config, o.Namespace, o.Settle = f.Config, namespace, time.Second
	o.Runtimes, o.Permissions = runtime.Everywhere(runtime.Deployment), &controller.Permissions{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			if holds(ctx) {
				break
			}
			select {
			case <-ctx.Done():
				done <- nil
				return
			case <-tick.C:
			}
		}
		m := env.Launch(o)
		<-ctx.Done()
		done <- m.Close()
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("manager: %v", err)
		}
		// The next test starts without a manager.
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: bootstrap.Name}}
		_ = f.Client.Delete(context.Background(), d)
	})
}

// isInstalled reports whether the Deployment of the manager exists.
func (f *former) isInstalled(ctx context.Context) bool {
	d := &appsv1.Deployment{}
	err := f.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: bootstrap.Name}, d)
	return err == nil && d.DeletionTimestamp == nil
}

// isServed reports whether the CRDs of the install objects are those of the manager.
func (f *former) isServed(ctx context.Context) bool {
	for _, plural := range []string{"clusterpackageinstalls", "packageinstalls", "packages", "stackdefinitions"} {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := f.Client.Get(ctx, client.ObjectKey{Name: plural + "." + packagesv1alpha1.Group}, crd)
		if err != nil || crd.Annotations[plan.ContentDigestAnnotation] == "" {
			return false
		}
	}
	return true
}

var errInterrupted = errors.New("interrupted")

// migrate plans and carries out the migration as a new process. It stops after a number of steps.
func (f *former) migrate(t *testing.T, cfg *rest.Config, steps int, withManager bool) error {
	t.Helper()
	p, err := f.plan(t, cfg, withManager)
	if err != nil {
		return err
	}
	return p.Run(t.Context(), env.Limit, func(string, ...any) {}, func(*migration.Step) error {
		if steps--; steps == 0 {
			return errInterrupted
		}
		return nil
	})
}

// check proves that nothing was lost, and that the manager runs the packages.
func (f *former) check(t *testing.T) {
	t.Helper()
	for name, uid := range f.crds {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := f.Client.Get(t.Context(), client.ObjectKey{Name: name}, crd); err != nil || string(crd.UID) != uid ||
			crd.DeletionTimestamp != nil {
			t.Errorf("CRD %s is not the same: %v", name, err)
		}
		wait.Until(t, env.Limit, name+" belongs to a Provider and has its content", func() (string, bool) {
			err := f.Client.Get(t.Context(), client.ObjectKey{Name: name}, crd)
			c := metav1.GetControllerOf(crd)
			return fmt.Sprintf("%+v %v", crd.OwnerReferences, err), err == nil && string(crd.UID) == uid && c != nil &&
				c.Kind == "Provider" && crd.Annotations[plan.ContentDigestAnnotation] != ""
		})
	}
	for _, name := range f.packages {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: name + ".example.org", Version: "v1", Kind: "ThingList"})
		if err := f.Client.List(t.Context(), list); err != nil || len(list.Items) != objects {
			t.Errorf("%s has %d custom resources, want %d (%v)", name, len(list.Items), objects, err)
		}
		for _, u := range list.Items {
			if got := string(u.GetUID()) + " " + u.GetResourceVersion(); got != f.things[name+"/"+u.GetName()] {
				t.Errorf("the custom resource %s of %s was written", u.GetName(), name)
			}
		}
	}
	for kind, key := range map[string]client.ObjectKey{
		packagesv1alpha1.ClusterPackageInstallKind: {Namespace: namespace, Name: f.packages[0]},
		packagesv1alpha1.PackageInstallKind:        {Namespace: f.team, Name: f.packages[1]},
	} {
		in := packagesv1alpha1.NewInstall(kind)
		wait.Until(t, env.Limit, kind+" is ready", func() (string, bool) {
			err := f.Client.Get(t.Context(), key, in)
			return fmt.Sprintf("%+v %v", in.InstallStatus(), err),
				err == nil && in.GetCondition("Ready").Status == corev1.ConditionTrue
		})
		for _, finalizer := range in.GetFinalizers() {
			if finalizer != firstgen.FinalizerProvider {
				t.Errorf("%s has the finalizer %s", key, finalizer)
			}
		}
	}
	for _, o := range []client.Object{
		object(packagesv1alpha1.EarlierGroup, "StackInstall", f.team, f.packages[1]),
		object(packagesv1alpha1.EarlierGroup, "Stack", f.team, f.packages[1]),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: f.packages[0] + "-former"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "stack:" + namespace + ":" + f.packages[0] + ":system"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: f.packages[0]}},
	} {
		if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) &&
			o.GetDeletionTimestamp() == nil {
			t.Errorf("%T %s is left", o, o.GetName())
		}
	}
	if pkg := f.overlap(); pkg != "" {
		t.Errorf("two controllers of %s ran at the same time", pkg)
	}
}

// A cluster is moved in one run, with one patch of the metadata of each CRD, and a second run has nothing to do.
func TestClusterIsMovedWithoutLosingAnObject(t *testing.T) {
	f := newFormer(t, "moved")
	own := f.createOwn(t, "moved-own")
	f.startManager(t, f.isInstalled)
	audit := &env.Audit{}
	if err := f.migrate(t, audit.Wrap(f.Config), 0, true); err != nil {
		t.Fatal(err)
	}
	for name := range f.crds {
		if writes := audit.Writes(name); len(writes) != 1 || !strings.HasPrefix(writes[0], http.MethodPatch) {
			t.Errorf("the migration writes CRD %s with %v, want one patch", name, writes)
		}
	}
	f.check(t)
	f.checkOwn(t, own)
	again := &env.Audit{}
	if err := f.migrate(t, again.Wrap(f.Config), 0, true); err != nil {
		t.Fatal(err)
	}
	if writes := again.Writes(""); len(writes) > 0 {
		t.Errorf("a second migration writes %v", writes)
	}
}

// The plan names the CRDs of a package that exist and that the record does not list, with the command that lets the
// Provider adopt them, or reports that the package cannot be read.
func TestPlanWarnsOfCRDsOutsideOfTheRecord(t *testing.T) {
	lane.Full(t, "test/firstgeneration/move.TestClusterIsMovedWithoutLosingAnObject")
	f := newFormer(t, "unrecorded")
	ref := f.Push(t, "former/unrecorded", "v1.0.0", content("unrecorded", "Cluster")+"---\n"+
		strings.SplitN(content("forgotten", "Cluster"), "---\n", 2)[1])
	f.createDefinition(t, "forgotten")
	notes := func(source state.Content) string {
		t.Helper()
		c, err := apply.NewCluster(f.Config)
		if err != nil {
			t.Fatal(err)
		}
		m := &firstgeneration.Migration{Client: f.Client, Cluster: c, Content: source, Manager: bootstrap.Options{
			Namespace: namespace, Version: "v1.0.0", Replicas: 1,
		}}
		p, err := m.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(p.Notes, "\n")
	}
	text := notes(env.OpenContent(t, t.TempDir(), fetch.Options{}).Source)
	for _, part := range []string{
		"The package " + ref +
			" contains CRDs that the cluster has, and that the record of ClusterPackageInstall crossplane-system/unrecorded does not list",
		"adopt things.forgotten.example.org (NeedsAdoption)", "`xpkg approve provider/unrecorded`",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the notes lack %q:\n%s", part, text)
		}
	}
	if strings.Contains(text, "things.unrecorded.example.org") || strings.Contains(text, "unrecordedstack does not list") {
		t.Errorf("the notes name CRDs of the record:\n%s", text)
	}
	if text := notes(unreadable{}); !strings.Contains(text, "cannot be read here (the registry is down)") ||
		!strings.Contains(text, "NeedsAdoption") {
		t.Errorf("without a registry:\n%s", text)
	}
}

// Packages that the manager could not install are found before the former package manager stops.
func TestPlanRefusesPackagesThatCannotReplaceTheInstallation(t *testing.T) {
	lane.Full(t, "test/firstgeneration/move.TestClusterIsMovedWithoutLosingAnObject")
	f := newFormer(t, "prepared")
	f.createDefinition(t, "foreign")
	foreign := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things.foreign.example.org"}}
	owner := &corev1.Namespace{}
	if err := errors.Join(
		f.Client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign),
		f.Client.Get(t.Context(), client.ObjectKey{Name: f.team}, owner),
	); err != nil {
		t.Fatal(err)
	}
	env.Update(t, f.Env, foreign, func(foreign *apiextensionsv1.CustomResourceDefinition) {
		foreign.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Namespace", Name: owner.Name, UID: owner.UID, Controller: new(true),
		}}
	})
	both := content("prepared", "Cluster") + "---\n" + strings.SplitN(content("preparedstack", "Cluster"), "---\n", 2)[1]
	source := env.OpenContent(t, t.TempDir(), fetch.Options{}).Source
	for name, tc := range map[string]struct{ to, problem string }{
		"missing": {f.Registry + "/former/nosuch:v3.0.0", "which cannot be installed"},
		"without its CRD": {
			f.Push(t, "former/other", "v1.0.0", content("other", "Cluster")),
			"has the CRD things.prepared.example.org, which the package",
		},
		"CRD of two": {f.Push(t, "former/both", "v1.0.0", both), "both contain the CRD things.preparedstack.example.org"},
		"another scope": {
			f.Push(
				t, "former/scope", "v1.0.0",
				strings.Replace(content("prepared", "Cluster"), "scope: Namespaced", "scope: Cluster", 1),
			),
			"CustomResourceDefinition things.prepared.example.org: spec.scope is Namespaced and cannot change to Cluster",
		},
		"CRD of an object": {
			f.Push(t, "former/foreign", "v1.0.0", content("prepared", "Cluster")+"---\n"+
				strings.SplitN(content("foreign", "Cluster"), "---\n", 2)[1]),
			"CustomResourceDefinition things.foreign.example.org belongs to Namespace/" + f.team,
		},
	} {
		c, err := apply.NewCluster(f.Config)
		if err != nil {
			t.Fatal(err)
		}
		m := &firstgeneration.Migration{
			Client: f.Client, Cluster: c, Content: source,
			Manager:      bootstrap.Options{Namespace: namespace, Version: "v1.0.0", Replicas: 1},
			Replacements: map[string]string{"former/prepared:v1.0.0": tc.to},
		}
		if _, err := m.Plan(t.Context()); !errors.Is(err, migration.ErrRefused) ||
			!strings.Contains(errcode.Message(err), tc.problem) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.problem)
		}
	}
}

// unreadable is content that no registry has.
type unreadable struct{ state.Content }

// Resolve implements state.Content.
func (unreadable) Resolve(context.Context, fetch.Origin, time.Duration) (oci.Digest, error) {
	return oci.Digest{}, errors.New("the registry is down")
}

// A manager that runs already does not disturb the migration, which stops after each step, and at each of its writes:
// before the write, or after it was carried out without an answer. Each time the next run continues, and the end is the
// same.
func TestInterruptedMigrationContinues(t *testing.T) {
	lane.Full(t, "test/firstgeneration/move.TestClusterIsMovedWithoutLosingAnObject")
	for name, stop := range map[string]func(t *testing.T, f *former) (runs int){
		"steps": func(t *testing.T, f *former) int {
			for n := 0; ; n++ {
				if err := f.migrate(t, f.Config, 1, false); err == nil {
					return n
				} else if !errors.Is(err, errInterrupted) {
					t.Fatal(err)
				}
			}
		},
		"errors": func(t *testing.T, f *former) int { return f.failEachWrite(t, fault.ServerError) },
		"lost":   func(t *testing.T, f *former) int { return f.failEachWrite(t, fault.LostAnswer) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFormer(t, "interrupted"+name)
			own := f.createOwn(t, "interrupted"+name+"-own")
			f.startManager(t, f.isServed)
			runs := stop(t, f)
			t.Logf("%d runs were stopped", runs)
			if runs < 3 {
				t.Errorf("%d runs were stopped, want at least 3", runs)
			}
			f.check(t)
			f.checkOwn(t, own)
		})
	}
}

// Other clients change each object at the moment at which the migration changes it. The migration reads the object
// again.
func TestMigrationRetriesConflicts(t *testing.T) {
	lane.Full(t, "test/firstgeneration/move.TestClusterIsMovedWithoutLosingAnObject")
	f := newFormer(t, "conflicts")
	f.startManager(t, f.isServed)
	c := &conflicts{failed: map[string]bool{}}
	cfg := rest.CopyConfig(f.Config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		c.next = next
		return c
	})
	if err := f.migrate(t, cfg, 0, false); err != nil {
		t.Error(err)
	}
	t.Logf("%d objects had a conflict", len(c.failed))
	if len(c.failed) < 3 {
		t.Errorf("only %v had a conflict", c.failed)
	}
	f.check(t)
}

// conflicts rejects the first patch of each object that depends on its resource version.
type conflicts struct {
	next   http.RoundTripper
	failed map[string]bool
}

// RoundTrip implements [http.RoundTripper]. The migration patches one object after the other.
func (c *conflicts) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPatch || c.failed[r.URL.Path] {
		return c.next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(body, []byte(`"resourceVersion"`)) {
		r.Body = io.NopCloser(bytes.NewReader(body))
		return c.next.RoundTrip(r)
	}
	c.failed[r.URL.Path] = true
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusConflict)
	err = json.NewEncoder(w).
		Encode(apierrors.NewConflict(schema.GroupResource{}, r.URL.Path, errors.New("the object has been modified")).Status())
	return w.Result(), err
}

// failEachWrite repeats the migration until it is complete. Each run ends with a fault at the first write that, by its
// method and path, has not failed before. The manager runs as soon as it serves the API, also between the runs.
func (f *former) failEachWrite(t *testing.T, kind fault.Kind) int {
	t.Helper()
	network, failed := fault.New(fault.SingleSubject("migration")), map[string]bool{}
	chosen := func(c fault.Call) bool { return c.Method != http.MethodGet && !failed[c.String()] }
	cfg := rest.CopyConfig(f.Config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return network.Transport(fault.Cluster, next) })
	for {
		network.Set("migration", fault.Fault{Kind: kind, Filter: chosen})
		err := f.migrate(t, cfg, 0, false)
		call, injected := network.Injected("migration")
		if !injected {
			if err != nil {
				t.Fatal(err)
			}
			return len(failed)
		}
		failed[call.String()] = true
	}
}
