package core

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/migration/fromcore"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/fault"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// installation is a Crossplane with its RBAC manager, and the Deployment of a manager that does not exist yet.
type installation struct {
	*suite
	core, rbac *appsv1.Deployment
	options    bootstrap.Options
	// content looks up the tags of packages, as the command does.
	content *fetch.Source
	// pods are those of the runtime of core.
	pods []types.UID
}

// installCore creates the Deployments of Crossplane. A stand-in adds its finalizer to the revisions of a package, as
// core does, until the test ends.
func installCore(t *testing.T, name string) *installation {
	t.Helper()
	return installCoreIn(t, newSuite(t), name)
}

// installCoreIn is like installCore, with the version of core of a suite.
func installCoreIn(t *testing.T, s *suite, name string) *installation {
	t.Helper()
	s.InstallPackageAPI(t)
	s.StartKubelet(t, namespace)
	s.EnsureCreated(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: crossplane.DefaultAccount,
	}})
	in := &installation{
		suite: s, core: s.deploy(t, crossplane.DeploymentName, "core", "start", "--debug"),
		rbac:    s.deploy(t, crossplane.RBACDeploymentName, "rbac", "start"),
		options: bootstrap.Options{Namespace: namespace, Image: "registry.example.org/xpkg:v1", Replicas: 2},
		content: env.OpenContent(t, t.TempDir(), fetch.Options{}).Source,
	}
	manifests, err := bootstrap.Manifests(in.options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, o := range append(bootstrap.CoreFence(), manifests...) {
			switch o.(type) {
			case *corev1.Namespace, *apiextensionsv1.CustomResourceDefinition:
			default:
				plain, err := bootstrap.Plain(o)
				if err != nil {
					t.Fatal(err)
				}
				s.Delete(t, &unstructured.Unstructured{Object: plain})
			}
		}
	})
	run(t, func(ctx context.Context) error {
		list := &v1.ProviderRevisionList{}
		if err := s.core.List(ctx, list, client.MatchingLabels{v1.LabelPackage: name}); err != nil {
			return err
		}
		var failures []error
		for i := range list.Items {
			if rev := &list.Items[i]; rev.DeletionTimestamp == nil && controllerutil.AddFinalizer(rev, v1.FinalizerRevision) {
				failures = append(failures, s.core.Update(ctx, rev, fieldManager))
			}
		}
		return errors.Join(failures...)
	})
	return in
}

// waitRuntime waits until the runtime of core is available, and records its pods.
func (in *installation) waitRuntime(t *testing.T, p installed) {
	t.Helper()
	wait.Until(t, env.Limit, "the runtime of core is available", func() (string, bool) {
		d := in.deploymentOf(t, p)
		return fmt.Sprintf("%+v", d.Status), d.Status.AvailableReplicas == 1
	})
	in.pods = in.podsOf(t, p.provider.Name)
}

// startManager runs the manager as soon as its Deployment exists, in place of its pods, until the Deployment has no
// replicas.
func (in *installation) startManager(t *testing.T, cfg *rest.Config) {
	t.Helper()
	o := env.OpenContent(t, t.TempDir(), fetch.Options{}).Options()
	o.Config, o.Namespace, o.Permissions = cfg, namespace, &controller.Permissions{}
	o.Runtimes, o.Settle = runtime.Everywhere(runtime.Deployment), time.Second
	ctx, cancel := context.WithCancel(context.Background())
	var started *env.Manager
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for ctx.Err() == nil {
			d := &appsv1.Deployment{}
			exists := in.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: bootstrap.Name}, d) == nil
			switch {
			case exists && started == nil:
				started = env.Launch(o)
			case exists && *d.Spec.Replicas == 0:
				started.Stop()
				return
			}
			<-tick.C
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if started == nil {
			t.Error("the manager was not installed")
		} else if err := started.Close(); err != nil {
			t.Error(err)
		}
	})
}

// plan plans the migration as a new process.
func (in *installation) plan(t *testing.T, cfg *rest.Config) (*migration.Plan, error) {
	m := &fromcore.Migration{Config: cfg, Client: env.NewClient(t, cfg), Content: in.content, Manager: in.options}
	return m.Plan(t.Context())
}

// migrate plans and carries out the migration as a new process. It stops after a number of steps.
func (in *installation) migrate(t *testing.T, cfg *rest.Config, steps int) error {
	p, err := in.plan(t, cfg)
	if err != nil {
		return err
	}
	return p.Run(t.Context(), env.Limit, func(string, ...any) {}, func(s *migration.Step) error {
		t.Logf("done: %s %q", s.Title, s.Details)
		if steps--; steps == 0 {
			return errInterrupted
		}
		return nil
	})
}

var errInterrupted = errors.New("interrupted")

// checkMoved fails unless the manager has taken over a Provider of core, and core leaves packages to the manager.
func (in *installation) checkMoved(t *testing.T, p installed) {
	t.Helper()
	final, err := in.plan(t, in.Config)
	if err != nil || final.Pending() != 0 {
		t.Errorf("a further migration has %d steps (%v): %+v", final.Pending(), err, final)
	}
	in.WaitReady(t, p.provider)
	revisions := in.Revisions(t, p.provider)
	if len(revisions) != 2 || revisions[1].GetUID() != p.revision.UID {
		t.Errorf("the revision of core was replaced: %+v", revisions)
	}
	for _, rev := range revisions {
		if len(rev.GetFinalizers()) != 0 {
			t.Errorf("%s has the finalizers %v", rev.GetName(), rev.GetFinalizers())
		}
	}
	if d := in.deploymentOf(t, p); d.UID != p.deployment.UID {
		t.Error("the Deployment was replaced")
	}
	if got := in.podsOf(t, p.provider.Name); !slices.Equal(got, in.pods) {
		t.Errorf("pods %v, were %v", got, in.pods)
	}
	core, rbac := &appsv1.Deployment{}, &appsv1.Deployment{}
	if err := errors.Join(
		in.Client.Get(t.Context(), client.ObjectKeyFromObject(in.core), core),
		in.Client.Get(t.Context(), client.ObjectKeyFromObject(in.rbac), rbac),
	); err != nil {
		t.Fatal(err)
	}
	if args := core.Spec.Template.Spec.Containers[0].Args; !slices.Equal(args, []string{
		"core", "start", "--debug", crossplane.ExternalRuntime,
	}) || *rbac.Spec.Replicas != 0 {
		t.Errorf("core runs with %q, and its RBAC manager has %d replicas", args, *rbac.Spec.Replicas)
	}
	for _, d := range []struct{ before, now *appsv1.Deployment }{{in.core, core}, {in.rbac, rbac}} {
		if _, err := crossplane.TakePackages(d.now); err != nil || !equality.Semantic.DeepEqual(d.now.Spec, d.before.Spec) {
			t.Errorf("the former settings of %s are not recorded: %v", d.now.Name, err)
		}
	}
	for name, d := range in.definitionsOf(t, p.provider.Name) {
		if c := metav1.GetControllerOf(&d); len(d.OwnerReferences) != 1 || c == nil || c.UID != p.provider.UID {
			t.Errorf("%s: owners %+v", name, d.OwnerReferences)
		}
		if err := in.Client.Get(t.Context(), client.ObjectKey{Name: name}, newDefinition(name)); !apierrors.IsNotFound(err) {
			t.Errorf("the managed resource definition %s: %v, want none", name, err)
		}
	}
}

// The migration of a Provider of core writes each CRD once. The revision keeps its name, the Deployment and its pods
// stay, no generation and no UID of a CRD changes, and all custom resources are readable at all times. Afterwards the
// Provider can be updated and uninstalled.
func TestMigrationFromCoreRestartsNoRuntime(t *testing.T) {
	lane.Full(t, "test/core.TestThereAndBack", "test/core.TestRolesOfXRDsMoveFromCoreAndBack")
	const name = "takenover"
	in := installCore(t, name)
	s, p := in.suite, in.installAsCore(t, name)
	kept := newDefinition("kept.example.org")
	s.CreateTemporary(t, kept)
	in.waitRuntime(t, p)
	for i := range takenResources {
		s.createThing(t, name, i%takenCRDs, fmt.Sprintf("thing-%d", i))
	}
	before := s.definitionsOf(t, name)
	changes, reads := s.countChanges(t, name), s.readThings(t, name)

	audit := &env.Audit{}
	in.startManager(t, audit.Wrap(s.Config))
	if err := in.migrate(t, audit.Wrap(s.Config), 0); err != nil {
		t.Fatal(err)
	}

	in.checkMoved(t, p)
	t.Logf("%d reads of custom resources", reads())
	after := s.definitionsOf(t, name)
	for crd, was := range before {
		is := after[crd]
		if was.UID != is.UID || was.Generation != is.Generation {
			t.Errorf("%s: UID %s, generation %d; was %s, %d", crd, is.UID, is.Generation, was.UID, was.Generation)
		}
	}
	written := map[string]int{}
	for _, w := range audit.Writes("." + name + ".example.org") {
		if strings.Contains(w, " customresourcedefinitions/") {
			written[w]++
		}
	}
	for w, n := range written {
		if n > 1 {
			t.Errorf("%d writes %s", n, w)
		}
	}
	changed := changes()
	t.Logf("%d writes of %d CRDs by the migration and the manager, %d changed", len(written), len(before), len(changed))
	for crd, n := range changed {
		if n > 1 {
			t.Errorf("%s was changed %d times", crd, n)
		}
	}
	if n := s.countThings(t, name); n != takenResources {
		t.Errorf("%d custom resources, want %d", n, takenResources)
	}
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil {
		t.Errorf("a managed resource definition of no package: %v", err)
	}

	// The next version pins the image, and replaces the revision of core as any other.
	next := s.Push(t, "core/"+name, "v2.0.0", manyKinds(name, "second"))
	env.Update(t, s.Env, p.provider, func(p *v1.Provider) { p.Spec.Package = next })
	s.WaitReady(t, p.provider)
	if n := s.countThings(t, name); n != takenResources {
		t.Errorf("%d custom resources after the update, want %d", n, takenResources)
	}
	s.Delete(t, p.provider)
	s.WaitGone(t, p.provider)
	wait.Until(t, env.Limit, "the CRDs are deleted", func() (string, bool) {
		n := len(s.definitionsOf(t, name))
		return fmt.Sprint(n), n == 0
	})
}

// A migration that stops after a step, or at any of its calls, continues with the next run and ends in the same state.
func TestMigrationFromCoreContinues(t *testing.T) {
	lane.Full(t, "test/core.TestThereAndBack", "internal/migration/fromcore.TestPlanFollowsTheCluster")
	for name, stop := range map[string]func(t *testing.T, in *installation) (runs int){
		"steps": func(t *testing.T, in *installation) int {
			for n := 0; ; n++ {
				if err := in.migrate(t, in.Config, 1); err == nil {
					return n
				} else if !errors.Is(err, errInterrupted) {
					t.Fatal(err)
				}
			}
		},
		"errors": func(t *testing.T, in *installation) int {
			return failEachCall(t, in.Config, fault.ServerError, func(fault.Call) bool { return true }, in.migrateAll(t))
		},
		"lost": func(t *testing.T, in *installation) int {
			return failEachCall(t, in.Config, fault.LostAnswer, isWriteCall, in.migrateAll(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			pkg := "continues" + name
			in := installCore(t, pkg)
			in.startManager(t, in.Config)
			p := in.installContentAsCore(t, pkg, providerYAML(pkg, "first"))
			t.Cleanup(func() {
				in.Delete(t, p.provider)
				in.WaitGone(t, p.provider)
			})
			in.waitRuntime(t, p)
			runs := stop(t, in)
			t.Logf("%d runs were stopped", runs)
			if runs < 4 {
				t.Errorf("%d runs were stopped, want at least 4", runs)
			}
			in.checkMoved(t, p)
		})
	}
}

// The plan names the revision that a package gets because its tag has moved since core installed it.
func TestMigrationPlanNamesMovedTags(t *testing.T) {
	lane.Full(t, "test/core.TestThereAndBack")
	const name = "moved"
	in := installCore(t, name)
	in.startManager(t, in.Config)
	p := in.installContentAsCore(t, name, providerYAML(name, "first"))
	t.Cleanup(func() {
		in.Delete(t, p.provider)
		in.WaitGone(t, p.provider)
	})
	in.waitRuntime(t, p)
	forecast := func() string {
		t.Helper()
		plan, err := in.plan(t, in.Config)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		plan.WriteText(&text)
		return text.String()
	}
	if got := forecast(); !strings.Contains(got, "the revision "+p.revision.Name+" and its runtime stay") {
		t.Errorf("before the tag moves:\n%s", got)
	}
	digest, err := publish.Package(t.Context(), p.provider.Spec.Package, []byte(providerYAML(name, "second")))
	if err != nil {
		t.Fatal(err)
	}
	want := revision.Name(p.provider, digest.String(), in.Revisions(t, p.provider))
	if got := forecast(); !strings.Contains(got, "gets the new revision "+want+", as by an update: its tag refers to "+
		digest.String()) {
		t.Errorf("after the tag has moved:\n%s", got)
	}
	if err := in.migrate(t, in.Config, 0); err != nil {
		t.Fatal(err)
	}
	in.WaitReady(t, p.provider)
	active := slices.IndexFunc(in.Revisions(t, p.provider), revision.IsActive)
	if got := in.Revisions(t, p.provider)[active].GetName(); got != want {
		t.Errorf("the revision %s is active, want %s", got, want)
	}
}

// migrateAll returns a function that plans and carries out the migration.
func (in *installation) migrateAll(t *testing.T) func(*rest.Config) error {
	return func(cfg *rest.Config) error { return in.migrate(t, cfg, 0) }
}

func isWriteCall(c fault.Call) bool { return c.Method != http.MethodGet }

// everyCall reports whether each call fails once. Otherwise every sixth call does.
var everyCall = lane.IsFull()

// failEachCall repeats a migration until it is complete. Each run ends with a fault at the first call that can fail
// and, by its method and path, has not failed before. It returns the number of these runs.
func failEachCall(
	t *testing.T, to *rest.Config, kind fault.Kind, fails func(fault.Call) bool, migrate func(*rest.Config) error,
) int {
	t.Helper()
	// known are the numbers of calls in the order in which they were made first.
	network, failed, known := fault.New(fault.SingleSubject("migration")), map[string]bool{}, map[string]int{}
	var mu sync.Mutex
	chosen := func(c fault.Call) bool {
		if !fails(c) {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		name := c.String()
		if _, ok := known[name]; !ok {
			known[name] = len(known)
		}
		return !failed[name] && (everyCall || known[name]%6 == 0)
	}
	cfg := rest.CopyConfig(to)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return network.Transport(fault.Cluster, next) })
	for {
		network.Set("migration", fault.Fault{Kind: kind, Filter: chosen})
		err := migrate(cfg)
		call, injected := network.Injected("migration")
		if !injected {
			if err != nil {
				t.Fatal(err)
			}
			return len(failed)
		}
		mu.Lock()
		failed[call.String()] = true
		mu.Unlock()
	}
}

// countChanges returns a function that returns how often the metadata or the spec of each CRD of a Provider was
// changed.
func (s *suite) countChanges(t *testing.T, name string) func() map[string]int {
	t.Helper()
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := s.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	last := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for i := range list.Items {
		last[list.Items[i].Name] = &list.Items[i]
	}
	w, err := s.Client.Watch(t.Context(), &apiextensionsv1.CustomResourceDefinitionList{}, &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion},
	})
	if err != nil {
		t.Fatal(err)
	}
	changes, done := map[string]int{}, make(chan struct{})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			crd, ok := event.Object.(*apiextensionsv1.CustomResourceDefinition)
			if !ok || crd.Spec.Group != name+".example.org" {
				continue
			}
			if was := last[crd.Name]; was == nil || !sameDefinition(was, crd) {
				changes[crd.Name]++
			}
			last[crd.Name] = crd
		}
	}()
	stop := sync.OnceFunc(func() {
		w.Stop()
		<-done
	})
	t.Cleanup(stop)
	return func() map[string]int {
		stop()
		return changes
	}
}

// sameDefinition reports whether two states of a CRD differ in their status and in the marks of the API server only.
func sameDefinition(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec) &&
		equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences) &&
		equality.Semantic.DeepEqual(a.Labels, b.Labels) && equality.Semantic.DeepEqual(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.Finalizers, b.Finalizers) &&
		equality.Semantic.DeepEqual(a.DeletionTimestamp, b.DeletionTimestamp)
}

// readThings reads the custom resources of a Provider, kind by kind, until the returned function is called, which
// returns the number of reads. It fails if a read fails, or if it does not return all objects.
func (s *suite) readThings(t *testing.T, name string) func() int {
	t.Helper()
	stop, done, reads := make(chan struct{}), make(chan struct{}), 0
	counts := map[int]int{}
	for i := range takenResources {
		counts[i%takenCRDs]++
	}
	c := env.NewClient(t, s.Config)
	go func() {
		defer close(done)
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for ; ; reads++ {
			kind := reads % takenCRDs
			list := &unstructured.UnstructuredList{Object: map[string]any{
				"apiVersion": name + ".example.org/v1", "kind": fmt.Sprintf("Thing%dList", kind),
			}}
			if err := c.List(context.Background(), list); err != nil || len(list.Items) != counts[kind] {
				t.Errorf("%d custom resources of kind %d, want %d: %v", len(list.Items), kind, counts[kind], err)
				return
			}
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	end := sync.OnceFunc(func() {
		close(stop)
		<-done
	})
	t.Cleanup(end)
	return func() int {
		end()
		return reads
	}
}
