package core

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/controller/packageapi"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/migration/tocore"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// stepLimit bounds each step of a migration.
const stepLimit = env.Limit / 2

// functionYAML and configurationYAML return packages of the other kinds.
func functionYAML(name string) string {
	return "apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata: {name: " + name + "}\n"
}

func configurationYAML(name string) string {
	return strings.ReplaceAll(`apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: NAME}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: NAME}
spec:
  compositeTypeRef: {apiVersion: NAME.example.org/v1, kind: XThing}
  mode: Pipeline
  pipeline: [{step: one, functionRef: {name: one}}]
`, "NAME", name)
}

// withManager is a cluster with a stand-in of core, and with a manager.
type withManager struct {
	*suite
	standIn *packageManager
	audit   *env.Audit // of the stand-in
	// coreDeployment and rbacDeployment are the Deployments of core.
	coreDeployment, rbacDeployment *appsv1.Deployment
}

// newWithManager returns a cluster with a fenced core and the manager.
func newWithManager(t *testing.T) *withManager {
	t.Helper()
	s := newWithCore(t)
	s.fenceCore(t)
	s.runManager(t)
	return s
}

// newWithCore returns a cluster in which the stand-in of core manages packages once it runs.
func newWithCore(t *testing.T) *withManager {
	t.Helper()
	s := &withManager{suite: newSuite(t), audit: &env.Audit{}}
	s.InstallPackageAPI(t)
	t.Cleanup(func() { s.restorePackageAPI(t) })
	s.StartKubelet(t, namespace)
	s.EnsureCreated(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: crossplane.DefaultAccount,
	}})
	s.coreDeployment, s.rbacDeployment = s.deploy(t, crossplane.DeploymentName, "core", "start"),
		s.deploy(t, "crossplane-rbac-manager", "rbac", "start")
	core := types.NamespacedName{Namespace: namespace, Name: crossplane.DefaultAccount}
	s.standIn = newPackageManager(env.NewClient(t, s.audit.Wrap(s.As(crossplane.UserName(core)))))
	return s
}

// restorePackageAPI makes the CRDs of the package API those of the manager again, for the next test.
func (s *withManager) restorePackageAPI(t *testing.T) {
	t.Helper()
	c, err := apply.NewCluster(s.Config)
	if err == nil {
		_, err = packageapi.Install(context.Background(), c, packageapi.Options{TakeOver: true})
	}
	if err != nil {
		t.Error(err)
	}
}

// fenceCore makes core leave the packages to the manager.
func (s *withManager) fenceCore(t *testing.T) {
	t.Helper()
	s.fence(t)
	for _, d := range []*appsv1.Deployment{s.coreDeployment, s.rbacDeployment} {
		env.Update(t, s.Env, d, func(d *appsv1.Deployment) { crossplane.LeavePackages(d) })
	}
}

// runManager creates the objects of the manager, and runs a manager in this process while the Deployment has replicas.
func (s *withManager) runManager(t *testing.T) {
	t.Helper()
	objects, err := bootstrap.Manifests(bootstrap.Options{Namespace: namespace, Version: "v1.0.0", Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		plain, err := bootstrap.Plain(o)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: plain}
		if u.GetKind() == "CustomResourceDefinition" || u.GetKind() == "Namespace" {
			continue
		}
		if err := s.Client.Apply(
			t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("test"), client.ForceOwnership,
		); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Client.Delete(context.Background(), u) })
	}
	o := env.OpenContent(t, t.TempDir(), fetch.Options{}).Options()
	o.Namespace, o.MakeNamespace, o.Settle = namespace, true, time.Second
	o.Runtimes, o.Permissions = runtime.Everywhere(runtime.Deployment), &controller.Permissions{}
	o.LeaderElection = &leader.Election{Identity: t.Name()}
	m := s.RunManager(t, o)
	run(t, func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := s.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: bootstrap.Name}, d); err == nil &&
			*d.Spec.Replicas == 0 {
			m.Stop()
		}
		return nil
	})
}

// runStandIn runs the stand-in of core until the test ends.
func (s *withManager) runStandIn(t *testing.T) { run(t, s.standIn.reconcile) }

// installPackage installs a package that the stand-in knows too.
func (s *withManager) installPackage(t *testing.T, kind, name, text string) v1.Package {
	t.Helper()
	p := env.NewPackage(kind, name, s.publish(t, name, "v1.0.0", text))
	s.Create(t, p)
	return p
}

// publish pushes the content of a package, and returns its reference.
func (s *withManager) publish(t *testing.T, name, tag, text string) string {
	t.Helper()
	ref := s.Registry + "/core/" + name + ":" + tag
	digest, err := publish.Package(t.Context(), ref, []byte(text))
	if err == nil {
		err = s.standIn.add(ref, digest, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// plan returns the plan back to core.
func (s *withManager) plan(t *testing.T, cfg *rest.Config) *migration.Plan {
	t.Helper()
	p, err := tocore.Plan(t.Context(), s.options(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (s *withManager) options(t *testing.T, cfg *rest.Config) tocore.Options {
	t.Helper()
	return tocore.Options{Client: newMigrationClient(t, cfg), Namespace: namespace, Poll: 20 * time.Millisecond}
}

// newMigrationClient returns a client as the command has one.
func newMigrationClient(t *testing.T, cfg *rest.Config) client.Client {
	t.Helper()
	c := env.NewClient(t, cfg)
	if err := coordinationv1.AddToScheme(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *withManager) runPlan(t *testing.T, p *migration.Plan) {
	t.Helper()
	err := p.Run(t.Context(),
		stepLimit, func(format string, args ...any) { t.Logf("  "+format, args...) }, func(step *migration.Step) error {
			t.Logf("done: %s", step.Title)
			return nil
		})
	if err != nil {
		seen, _ := s.standIn.settled()
		t.Fatalf("%v\ncore: %s\nfailures of core: %v", err, seen, s.standIn.failures())
	}
}

// tracesIn returns the annotations, labels and finalizers of the manager that are left in the cluster.
func (s *withManager) tracesIn(t *testing.T) []string {
	t.Helper()
	var out []string
	resources, err := discover(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, gvk := range resources {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		if err := s.Client.List(t.Context(), list); err != nil {
			continue // Some kinds, such as reviews, cannot be listed.
		}
		for _, o := range list.Items {
			var keys []string
			for key := range o.Annotations {
				keys = append(keys, key)
			}
			for key := range o.Labels {
				keys = append(keys, key)
			}
			for _, key := range append(keys, o.Finalizers...) {
				if strings.HasPrefix(key, "xpkg.dev/") {
					out = append(out, fmt.Sprintf("%s %s: %s", gvk.Kind, o.Name, key))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// deploymentNamed reads a Deployment.
func (s *withManager) deploymentNamed(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := s.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// updateAndDelete makes core update a package, and deletes it.
func (s *withManager) updateAndDelete(t *testing.T, p v1.Package, text string) {
	t.Helper()
	next := s.publish(t, p.GetName(), "v2.0.0", text)
	env.Update(t, s.Env, p, func(p v1.Package) { p.PackageSpec().Package = next })
	s.waitCore(t, p, next)
	s.Delete(t, p)
	s.WaitGone(t, p)
	if f := s.standIn.failures(); len(f) > 0 {
		t.Errorf("core failed: %v", f)
	}
}

// waitCore waits until core has a reference of a package healthy.
func (s *withManager) waitCore(t *testing.T, p v1.Package, reference string) {
	t.Helper()
	wait.Until(t, env.Limit, "core has "+reference, func() (string, bool) {
		seen, settled := s.standIn.settled()
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		ok := p.PackageStatus().CurrentIdentifier == reference &&
			p.GetCondition(v1.TypeHealthy).Status == corev1.ConditionTrue
		return fmt.Sprintf("%s; failures %v", seen, s.standIn.failures()), settled && ok
	})
}

// discover returns the kinds that a cluster serves.
func discover(cfg *rest.Config) ([]schema.GroupVersionKind, error) {
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	var out []schema.GroupVersionKind
	for _, list := range lists {
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") {
				out = append(out, schema.FromAPIVersionAndKind(list.GroupVersion, r.Kind))
			}
		}
	}
	return out, nil
}
