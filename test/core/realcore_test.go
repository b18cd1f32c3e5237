package core

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/localcore"
	"github.com/xpkg-dev/xpkg/internal/migration/tocore"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/realcore"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// The packages of an unmodified Crossplane core move to the manager and back: with XPKG_CORE, the executable of core
// runs in place of the pods of its Deployment. Revisions, Deployments, pods, and the UIDs of CRDs stay, custom
// resources are readable at all times, and core can update and delete the packages afterwards.
func TestRealCoreThereAndBack(t *testing.T) {
	executable := realcore.Executable(t)
	const name = "realcore"
	s := newSuite(t)
	if version := localcore.ModuleVersion(executable); version != "" {
		s.version = version // The names of revisions depend on the version.
	} else {
		t.Logf("the version of %s is unknown: it is tested as core %s", executable, s.version)
	}
	in := installCoreIn(t, s, name)
	t.Cleanup(func() { (&withManager{suite: in.suite}).restorePackageAPI(t) })
	core := in.superviseCore(t, executable)
	core.waitRunning(t)

	text := manyKinds(name, "first")
	provider, function := in.createPackage(t, v1.ProviderKind, name, text),
		in.createPackage(t, v1.FunctionKind, name+"-function", functionYAML(name+"-function"))
	all := []v1.Package{provider, function}
	for _, p := range all {
		in.waitHealthyInCore(t, p)
	}
	for i := range takenResources {
		in.createThing(t, name, i%takenCRDs, fmt.Sprintf("thing-%d", i))
	}
	before := in.objectsOf(t, all)
	definitions := in.definitionsOf(t, name)
	reads := in.readThings(t, name)

	started := time.Now()
	audit := &env.Audit{}
	in.startManager(t, audit.Wrap(in.Config))
	if err := in.migrate(t, audit.Wrap(in.Config), 0); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		in.WaitReady(t, p)
	}
	t.Logf("moved to the manager after %s, with %d writes of CRDs", time.Since(started), countDefinitions(audit, name))
	core.waitRunning(t)
	if got := in.objectsOf(t, all); !slices.Equal(got, before) {
		t.Errorf("revisions, Deployments and pods after the move:\n%q, were\n%q", got, before)
	}
	for crd, is := range in.definitionsOf(t, name) {
		if was := definitions[crd]; was.UID != is.UID || was.Generation != is.Generation {
			t.Errorf("%s: UID %s, generation %d; was %s, %d", crd, is.UID, is.Generation, was.UID, was.Generation)
		}
	}

	// Core takes over packages that it has never seen, too.
	added := []v1.Package{
		in.createPackage(t, v1.ProviderKind, name+"-added", providerYAML(name+"-added", "first")),
		in.createPackage(t, v1.ConfigurationKind, name+"-configuration", configurationYAML(name+"-configuration")),
	}
	for _, p := range added {
		in.WaitReady(t, p)
	}

	started = time.Now()
	plan, err := tocore.Plan(t.Context(), tocore.Options{
		Client: newMigrationClient(t, in.Config), Namespace: namespace, Poll: pace,
	})
	if err != nil {
		t.Fatal(err)
	}
	(&withManager{suite: in.suite, standIn: newPackageManager(in.suite.core)}).runPlan(t, plan)
	core.waitRunning(t)
	for _, p := range slices.Concat(all, added) {
		in.waitHealthyInCore(t, p)
	}
	t.Logf("moved back to core after %s", time.Since(started))
	if got := in.objectsOf(t, all); !slices.Equal(got, before) {
		t.Errorf("revisions, Deployments and pods after the way back:\n%q, were\n%q", got, before)
	}
	t.Logf("%d reads of custom resources", reads())
	if n := in.countThings(t, name); n != takenResources {
		t.Errorf("%d custom resources, want %d", n, takenResources)
	}
	for _, trace := range (&withManager{suite: in.suite}).tracesIn(t) {
		t.Errorf("left in the cluster: %s", trace)
	}

	next := in.Push(t, "core/"+name, "v2.0.0", manyKinds(name, "second"))
	env.Update(t, in.Env, provider, func(p v1.Package) { p.PackageSpec().Package = next })
	in.waitHealthyInCore(t, provider)
	for _, p := range slices.Concat(all, added) {
		in.Delete(t, p)
		in.WaitGone(t, p)
	}
	wait.Until(t, env.Limit, "the CRDs are deleted", func() (string, bool) {
		n := len(in.definitionsOf(t, name))
		return fmt.Sprint(n), n == 0
	})
}

// supervisedCore runs core with the arguments of its Deployment.
type supervisedCore struct {
	mu      sync.Mutex
	args    []string
	process *realcore.Process
	last    error
}

// superviseCore runs core as its Deployment requests until the test ends: its initialization, and a process that is
// replaced when the arguments change or core exits. Core uses the identity of its ServiceAccount.
func (in *installation) superviseCore(t *testing.T, executable string) *supervisedCore {
	t.Helper()
	in.EnsureCreated(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "crossplane-admin"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: crossplane.DefaultAccount,
		}},
	})
	t.Cleanup(func() {
		in.Delete(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "crossplane-admin"}})
	})
	installed := realcore.New(t, executable, in.kubeconfig(t), in.Client)
	c := &supervisedCore{}
	run(t, func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := in.Client.Get(ctx, client.ObjectKeyFromObject(in.core), d); err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		args := d.Spec.Template.Spec.Containers[0].Args[2:] // without "core start"
		if c.process != nil && !c.process.Exited() && slices.Equal(args, c.args) {
			return nil
		}
		if c.process != nil {
			c.process.Stop(t)
			c.process = nil
		}
		if c.last = installed.Initialize(ctx); c.last != nil {
			return c.last
		}
		c.args = slices.Clone(args)
		c.process, c.last = installed.Start(t, args...)
		return c.last
	})
	return c
}

// waitRunning waits until core is ready.
func (c *supervisedCore) waitRunning(t *testing.T) {
	t.Helper()
	wait.Until(t, env.Limit, "core is ready", func() (string, bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return fmt.Sprint(c.last), c.process != nil && c.process.Ready(t.Context())
	})
}

// kubeconfig returns the path of a kubeconfig with the token of core's ServiceAccount.
func (in *installation) kubeconfig(t *testing.T) string {
	t.Helper()
	cfg := in.ServiceAccount(t, namespace, crossplane.DefaultAccount)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {
			Server: cfg.Host, CertificateAuthorityData: cfg.CAData, CertificateAuthority: cfg.CAFile,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: cfg.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// createPackage publishes and creates a package, which core or the manager installs.
func (in *installation) createPackage(t *testing.T, kind, name, text string) v1.Package {
	t.Helper()
	p := env.NewPackage(kind, name, in.Push(t, "core/"+name, "v1.0.0", text))
	in.Create(t, p)
	return p
}

// waitHealthyInCore waits until core has the reference of a package healthy.
func (in *installation) waitHealthyInCore(t *testing.T, p v1.Package) {
	t.Helper()
	wait.Until(t, env.Limit, "core has "+p.GetName()+" healthy", func() (string, bool) {
		if err := in.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		ok := p.PackageStatus().CurrentIdentifier == p.PackageSpec().Package &&
			p.GetCondition(v1.TypeHealthy).Status == corev1.ConditionTrue
		return fmt.Sprintf("%+v", p.PackageStatus().Conditions), ok
	})
}

// objectsOf returns the UIDs of the revisions, Deployments and pods of packages.
func (in *installation) objectsOf(t *testing.T, packages []v1.Package) []types.UID {
	t.Helper()
	var out []types.UID
	for _, p := range packages {
		for _, rev := range in.Revisions(t, p) {
			out = append(out, rev.GetUID())
			deployments := &appsv1.DeploymentList{}
			if err := in.Client.List(t.Context(), deployments, client.InNamespace(namespace)); err != nil {
				t.Fatal(err)
			}
			for _, d := range deployments.Items {
				if metav1.IsControlledBy(&d, rev) {
					out = append(out, d.UID)
				}
			}
		}
		pods := &corev1.PodList{}
		label := map[string]string{v1.ProviderKind: v1.LabelProvider, v1.FunctionKind: v1.LabelFunction}[p.PackageKind()]
		if err := in.Client.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{
			label: p.GetName(),
		}); err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods.Items {
			out = append(out, pod.UID)
		}
	}
	slices.Sort(out)
	return out
}
