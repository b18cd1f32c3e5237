// Package gitops_test runs the appliers of Flux and Argo CD against the manager: after all have converged, none of them
// writes. It is a module of its own, because the applier of Argo CD requires Kubernetes itself.
package gitops_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/engine"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/utils"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen/setup"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/internal/up/child"
)

const (
	namespace = "crossplane-system"
	// rounds is the number of reconciliations of each applier: those of ten minutes with an interval of ten seconds,
	// without the pauses.
	rounds = 60
	// durationVariable is the environment variable with a duration: then the appliers reconcile every ten seconds of it.
	durationVariable = "XPKG_GITOPS_DURATION"
	interval         = 10 * time.Second
	// trackingAnnotation is the annotation by which Argo CD knows the objects of an application.
	trackingAnnotation = "argocd.argoproj.io/tracking-id"
)

// manifests are objects of each kind that users write, for an applier NAME.
const manifests = `apiVersion: pkg.crossplane.io/v1beta1
kind: DeploymentRuntimeConfig
metadata: {name: NAME}
spec:
  deploymentTemplate:
    spec:
      selector: {}
      template: {spec: {containers: [{name: package-runtime, args: [--debug]}]}}
---
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata: {name: NAME}
spec:
  matchImages: [{type: Prefix, prefix: registry.invalid/NAME}]
  registry: {authentication: {pullSecretRef: {name: NAME}}}
---
apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata: {name: NAME-provider}
spec:
  package: REGISTRY/NAME/provider:v1.0.0
  runtimeConfigRef: {name: NAME}
---
apiVersion: pkg.crossplane.io/v1
kind: Configuration
metadata: {name: NAME-configuration}
spec:
  package: REGISTRY/NAME/configuration:v1.0.0
---
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata: {name: NAME-function}
spec:
  package: REGISTRY/NAME/function:v1.0.0
---
apiVersion: packages.crossplane.io/v1alpha1
kind: ClusterPackageInstall
metadata: {namespace: crossplane-system, name: NAME-install}
spec:
  package: REGISTRY/NAME/install:v1.0.0
`

// applier applies objects as a tool for GitOps does.
type applier interface {
	apply(ctx context.Context, objects []*unstructured.Unstructured) error
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	if os.Getenv(child.Variable) == "" {
		// The control plane is built in another module.
		program, err := filepath.Abs(filepath.Join("..", "..", "bin", "xpkg-controlplane"))
		if err == nil {
			err = os.Setenv(child.Variable, program)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// TestAppliersWriteNothingAfterConvergence proves that the appliers of Flux and Argo CD, the manager and the API server
// agree on each object: no reconciliation writes after the first ones.
func TestAppliersWriteNothingAfterConvergence(t *testing.T) {
	lane.Full(t, "internal/controller.TestRestartNeedsFewRequests")
	if testing.Short() {
		t.Skip("needs an API server: skipped with -short")
	}
	s, manager := env.New(t), &env.Audit{}
	s.EnsureCreated(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	s.StartKubelet(t, namespace)
	o := env.OpenContent(t, t.TempDir(), fetch.Options{}).Options()
	o.Config, o.Namespace, o.Settle = manager.Wrap(s.Config), namespace, time.Second
	o.Runtimes, o.Permissions = runtime.Everywhere(runtime.Deployment), &controller.Permissions{}
	o.FirstGeneration = setup.Extension(firstgen.Options{Enabled: true})
	s.RunManager(t, o)

	applierCalls := &env.Audit{}
	config := applierCalls.Wrap(s.Config)
	config.QPS = -1
	fluxClient, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	clusterCache := cache.NewClusterCache(config, cache.SetLogr(logr.Discard()),
		cache.SetPopulateResourceInfoHandler(func(un *unstructured.Unstructured, _ bool) (any, bool) {
			id := un.GetAnnotations()[trackingAnnotation]
			return id, id != ""
		}))
	argo := argoApplier{engine.NewEngine(config, clusterCache, engine.WithLogr(logr.Discard()))}
	stop, err := argo.engine.Run()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	appliers := map[string]applier{
		"flux": fluxApplier{ssa.NewResourceManager(fluxClient, nil, ssa.Owner{
			Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io",
		})},
		"argo": argo,
	}

	all := map[string][]*unstructured.Unstructured{}
	for name, a := range appliers {
		publishPackages(t, s, name)
		objects, err := utils.ReadObjects(
			strings.NewReader(strings.NewReplacer("NAME", name, "REGISTRY", s.Registry).Replace(manifests)),
		)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = objects
		if err := a.apply(t.Context(), copies(objects)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for _, objects := range all {
		for _, o := range objects {
			waitReady(t, s, o)
		}
	}
	before := stable(t, s)
	manager.Reset("")
	applierCalls.Reset("")

	begin, done := time.Now(), 0
	var duration time.Duration
	if value := os.Getenv(durationVariable); value != "" {
		if duration, err = time.ParseDuration(value); err != nil {
			t.Fatalf("%s: %v", durationVariable, err)
		}
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for done = 0; duration == 0 && done < rounds || time.Since(begin) < duration; done++ {
		for name, a := range appliers {
			if err := a.apply(t.Context(), copies(all[name])); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if duration > 0 {
			<-tick.C
		}
	}
	if diff := cmp.Diff(before, versions(t, s)); diff != "" {
		t.Errorf("objects changed (-before +after):\n%s", diff)
	}
	dryRuns := 0
	for client, audit := range map[string]*env.Audit{"the manager": manager, "an applier": applierCalls} {
		for _, call := range audit.Calls("") {
			switch {
			case call.DryRun:
				dryRuns++
			case call.Method != http.MethodGet:
				t.Errorf("%s sent %s: %s", client, call, call.Body)
			}
		}
	}
	t.Logf(
		"%d rounds of both appliers in %s: %d objects without a change, %d dry runs", done,
		time.Since(begin).Round(time.Second), len(before), dryRuns,
	)
}

// fluxApplier is the applier of the kustomize-controller of Flux.
type fluxApplier struct{ *ssa.ResourceManager }

func (a fluxApplier) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	a.SetOwnerLabels(objects, "packages", "flux-system")
	_, err := a.ApplyAllStaged(ctx, objects, ssa.DefaultApplyOptions())
	return err
}

// argoApplier is the applier of the application controller of Argo CD.
type argoApplier struct{ engine engine.GitOpsEngine }

func (a argoApplier) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		o.SetAnnotations(map[string]string{trackingAnnotation: "packages:" + o.GetKind() + "/" + o.GetName()})
	}
	isManaged := func(r *cache.Resource) bool { id, _ := r.Info.(string); return id != "" }
	_, err := a.engine.Sync(
		ctx, objects, isManaged, "main", namespace, sync.WithPrune(true), sync.WithLogr(logr.Discard()),
	)
	return err
}

func copies(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, o := range objects {
		out = append(out, o.DeepCopy())
	}
	return out
}

// publishPackages pushes the packages of an applier.
func publishPackages(t *testing.T, s *env.Env, name string) {
	t.Helper()
	const definition = "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.PACKAGE.NAME.test}\nspec:\n  group: PACKAGE.NAME.test\n" +
		"  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}\n  scope: Cluster\n  versions:\n" +
		"  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n"
	const composition = "---\napiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {name: NAME}\nspec:\n  compositeTypeRef: {apiVersion: NAME.test/v1, kind: XAny}\n" +
		"  mode: Pipeline\n  pipeline:\n  - {step: one, functionRef: {name: any}}\n"
	for pkg, content := range map[string]string{"provider": "Provider" + definition, "configuration": "Configuration" +
		composition, "function": "Function", "install": "Provider" + definition} {
		kind, objects, _ := strings.Cut(content, "---\n")
		stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: " + kind + "\nmetadata: {name: PACKAGE}\n"
		if objects != "" {
			stream += "---\n" + objects
		}
		s.Push(t, name+"/"+pkg, "v1.0.0", strings.NewReplacer("PACKAGE", pkg, "NAME", name).Replace(stream))
	}
}

// waitReady waits until an object with conditions is ready.
func waitReady(t *testing.T, s *env.Env, o *unstructured.Unstructured) {
	t.Helper()
	if strings.HasSuffix(o.GetKind(), "Config") {
		return
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	wait.Until(t, env.Limit, o.GetKind()+" "+o.GetName()+" is ready", func() (string, bool) {
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), live); err != nil {
			return err.Error(), false
		}
		conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
		if len(conditions) == 0 {
			conditions, _, _ = unstructured.NestedSlice(live.Object, "status", "conditionedStatus", "conditions")
		}
		for _, c := range conditions {
			if c, _ := c.(map[string]any); c["type"] == "Ready" && c["status"] == "True" {
				return "", true
			}
		}
		return live.GetName() + " is not ready", false
	})
}

// stable returns the versions of all objects when they have not changed between two reads.
func stable(t *testing.T, s *env.Env) map[string]string {
	t.Helper()
	before := versions(t, s)
	same := 0
	wait.Until(t, env.Limit, "no object changes", func() (string, bool) {
		now := versions(t, s)
		diff := cmp.Diff(before, now)
		before = now
		same++
		if diff != "" {
			same = 0
		}
		const enough = 40 // two seconds
		return diff, same >= enough
	})
	return before
}

// versions returns the versions of the packages, of their revisions and configuration, and of what they install.
func versions(t *testing.T, s *env.Env) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "pkg.crossplane.io", Version: "v1", Kind: "Provider"},
		{Group: "pkg.crossplane.io", Version: "v1", Kind: "ProviderRevision"},
		{Group: "pkg.crossplane.io", Version: "v1", Kind: "Configuration"},
		{Group: "pkg.crossplane.io", Version: "v1", Kind: "ConfigurationRevision"},
		{Group: "pkg.crossplane.io", Version: "v1", Kind: "Function"},
		{Group: "pkg.crossplane.io", Version: "v1", Kind: "FunctionRevision"},
		{Group: "pkg.crossplane.io", Version: "v1beta1", Kind: "ImageConfig"},
		{Group: "pkg.crossplane.io", Version: "v1beta1", Kind: "DeploymentRuntimeConfig"},
		{Group: "pkg.crossplane.io", Version: "v1beta1", Kind: "Lock"},
		{Group: "packages.crossplane.io", Version: "v1alpha1", Kind: "ClusterPackageInstall"},
		{Group: "packages.crossplane.io", Version: "v1alpha1", Kind: "Package"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "Composition"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ServiceAccount"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := s.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			out[gvk.Kind+" "+o.Namespace+"/"+o.Name] = o.ResourceVersion
		}
	}
	return out
}
