package gitops_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/engine"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/utils"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// prunedResources is the number of custom resources of each package that is pruned.
const prunedResources = 412

// A package whose manifest is removed from the repository is not deleted while it has custom resources: each attempt of
// the pruning of Flux and of Argo CD is denied, with the number and the two answers, and nothing is lost. The answers,
// which an annotation gives, are carried out by the next pruning.
func TestPruningLosesNoCustomResources(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server: skipped with -short")
	}
	s := env.New(t)
	s.EnsureCreated(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	s.StartKubelet(t, namespace)
	o := env.OpenContent(t, t.TempDir(), fetch.Options{}).Options()
	o.Config, o.Namespace, o.Settle, o.CountInterval = s.Config, namespace, time.Second, time.Second
	o.Runtimes, o.Permissions = runtime.Everywhere(runtime.Deployment), &controller.Permissions{}
	s.RunManager(t, o)

	config := s.As("gitops-controller")
	config.QPS = -1
	fluxClient, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	flux := fluxApplier{ssa.NewResourceManager(fluxClient, nil, ssa.Owner{
		Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io",
	})}
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

	for name, tool := range map[string]struct {
		applier
		prune  func(objects []*unstructured.Unstructured) error
		answer string
		kept   int
	}{
		"flux": {flux, func(objects []*unstructured.Unstructured) error {
			_, err := flux.DeleteAll(t.Context(), objects, ssa.DefaultDeleteOptions())
			return err
		}, "orphan", prunedResources},
		"argo": {argo, func([]*unstructured.Unstructured) error {
			results, err := argo.engine.Sync(t.Context(), nil, func(r *cache.Resource) bool {
				id, _ := r.Info.(string)
				return id != ""
			}, "main", namespace, sync.WithPrune(true), sync.WithLogr(logr.Discard()))
			for _, r := range results {
				err = fmt.Errorf("%s %s: %s; %w", r.ResourceKey.Kind, r.ResourceKey.Name, r.Message, err)
			}
			return err
		}, fmt.Sprintf("cascade=%d", prunedResources), 0},
	} {
		publishPackages(t, s, name)
		objects, err := utils.ReadObjects(strings.NewReader(strings.NewReplacer("NAME", name, "REGISTRY", s.Registry).Replace(
			"apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: NAME-provider}\nspec: {package: 'REGISTRY/NAME/provider:v1.0.0'}\n",
		)))
		if err != nil {
			t.Fatal(err)
		}
		if err := tool.apply(t.Context(), copies(objects)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		waitReady(t, s, objects[0])
		count := createThings(t, s, "provider."+name+".test")
		p := env.NewProvider(objects[0].GetName(), "")
		wait.Until(t, env.Limit, "the custom resources are counted", func() (string, bool) {
			err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p)
			n := p.Status.CustomResources
			return fmt.Sprint(n, err), n != nil && *n == prunedResources
		})
		for range 3 {
			err := tool.prune(copies(objects))
			for _, part := range []string{
				fence.RemovalsName, "has 412 custom resources", v1.AnnotationOnDelete + "=orphan", v1.AnnotationOnDelete + "=cascade=412",
			} {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Fatalf("%s: the pruning lacks %q: %v", name, part, err)
				}
			}
			if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil || p.DeletionTimestamp != nil {
				t.Fatalf("%s: %v, deleted at %v", name, err, p.DeletionTimestamp)
			}
			if n := count(); n != prunedResources {
				t.Fatalf("%s: %d custom resources are left", name, n)
			}
		}
		env.Update(t, s, p, func(p *v1.Provider) {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1.AnnotationOnDelete, tool.answer)
		})
		wait.Until(t, env.Limit, name+" has pruned the package", func() (string, bool) {
			// The cache of the applier can be behind.
			err := tool.prune(copies(objects))
			return fmt.Sprint(err), client.IgnoreNotFound(s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p)) == nil &&
				(p.DeletionTimestamp != nil || err == nil)
		})
		s.WaitGone(t, p)
		if n := count(); n != tool.kept {
			t.Errorf("%s: %d custom resources are left after %s, want %d", name, n, tool.answer, tool.kept)
		}
	}
}

// createThings creates custom resources of a group, and returns a function that counts them.
func createThings(t *testing.T, s *env.Env, group string) (count func() int) {
	t.Helper()
	for i := range prunedResources {
		if err := s.Client.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1", "kind": "Thing", "metadata": map[string]any{"name": fmt.Sprint("thing-", i)},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	return func() int {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(group + "/v1")
		list.SetKind("ThingList")
		if err := s.Client.List(t.Context(), list); err != nil {
			return 0 // The kind is deleted.
		}
		return len(list.Items)
	}
}
