package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// a bench is a control plane with a registry, and a user with a command line.
type bench struct {
	t          *testing.T
	client     client.Client
	config     *rest.Config
	registry   string
	kubeconfig string
	dir        string
}

func newBench(t *testing.T) bench {
	t.Helper()
	return benchWith(t, func(*controller.Options, *fetch.Source) {})
}

// benchWith returns a bench whose manager has other options.
func benchWith(t *testing.T, how func(*controller.Options, *fetch.Source)) bench {
	t.Helper()
	dir := t.TempDir()
	b := bench{t: t, config: cluster.Start(t), registry: cluster.Registry(t), kubeconfig: cluster.Kubeconfig(t), dir: dir}
	store, err := store.Open(filepath.Join(dir, "manager"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	source := fetch.NewSource(fetch.Options{Store: store})
	o := controller.Options{Content: source}
	how(&o, source)
	manager := (&env.Env{Config: b.config}).RunManager(t, o)
	t.Cleanup(func() {
		manager.Stop()
		source.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	b.client = env.NewClient(t, b.config)
	return b
}

// ended is how a command has ended.
type ended struct {
	code        int
	out, errors string
}

// run runs a command of the user, also in a cleanup.
func (b bench) run(t *testing.T, kubeconfig string, args ...string) ended {
	t.Helper()
	// Cleanups run commands after the end of the context.
	return b.runUntil(context.WithoutCancel(t.Context()), kubeconfig, args...)
}

// runUntil runs a command, which the end of ctx interrupts.
func (b bench) runUntil(ctx context.Context, kubeconfig string, args ...string) ended {
	var out, errs bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	args = append(
		[]string{"xpkg"}, append(args, "--kubeconfig", kubeconfig, "--cache-dir", filepath.Join(b.dir, "user"))...,
	)
	code := cli.Main(ctx, args, env)
	return ended{code, out.String(), errs.String()}
}

// must runs a command that ends with a code.
func (b bench) must(t *testing.T, code int, args ...string) ended {
	t.Helper()
	e := b.run(t, b.kubeconfig, args...)
	if e.code != code {
		t.Fatalf("xpkg %q: exit code %d, want %d\n%s%s", args, e.code, code, e.out, e.errors)
	}
	return e
}

// plain runs a command without a package cache, which ends with a code.
func (b bench) plain(t *testing.T, code int, args ...string) ended {
	t.Helper()
	var out, errs bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	e := ended{
		cli.Main(t.Context(), append([]string{"xpkg"}, append(args, "--kubeconfig", b.kubeconfig)...), env), out.String(),
		errs.String(),
	}
	if e.code != code {
		t.Fatalf("xpkg %q: exit code %d, want %d\n%s%s", args, e.code, code, e.out, e.errors)
	}
	return e
}

// push publishes a provider with a definition of each of these kinds.
func (b bench) push(t *testing.T, repository, tag string, kinds ...string) string {
	t.Helper()
	return b.pushDependent(t, repository, tag, "", kinds...)
}

// pushDependent publishes a provider with a dependency, unless it is empty: its repository and
// a constraint.
func (b bench) pushDependent(t *testing.T, repository, tag, needs string, kinds ...string) string {
	t.Helper()
	group := strings.ReplaceAll(repository, "/", "-") + ".apply.test"
	stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: p\n"
	if pkg, constraint, _ := strings.Cut(needs, " "); pkg != "" {
		stream += fmt.Sprintf("spec:\n  dependsOn:\n  - provider: %s\n    version: %q\n", pkg, cmp.Or(constraint, ">=v0.0.0"))
	}
	for _, kind := range kinds {
		stream += publish.Definition(group, kind, tag)
	}
	return publish.Stream(t, b.registry, repository, tag, []byte(stream)).String()
}

func (b bench) provider(t *testing.T, name string) *v1.Provider {
	t.Helper()
	p := &v1.Provider{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: name}, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// patch changes an object as another client does.
func (b bench) patch(t *testing.T, o client.Object, patch string) {
	t.Helper()
	if err := b.client.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func definition(name string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// gone waits until the definition of a package is gone.
func (b bench) gone(t *testing.T, name string) {
	t.Helper()
	b.definitionGone(t, "kepts."+name+".apply.test")
}

// definitionGone waits until a definition is gone.
func (b bench) definitionGone(t *testing.T, name string) {
	t.Helper()
	wait.Until(t, time.Minute, name+" is gone", func() (string, bool) {
		err := b.client.Get(t.Context(), client.ObjectKey{Name: name}, definition(""))
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
}

// apply refuses a plan whose inputs have changed, prints the differences, and writes nothing.
func TestApplyRefusesAChangedPlan(t *testing.T) {
	b := newBench(t)
	other := b.push(t, "other", "v1.0.0")
	update := func(t *testing.T, name string) []string { return []string{"plan", "update", name, "v2"} }
	uninstall := func(t *testing.T, name string) []string { return []string{"plan", "uninstall", "provider", name} }
	for name, tc := range map[string]struct {
		plan func(t *testing.T, name string) []string
		// move changes something between the plan and its application.
		move func(t *testing.T, name string)
		want string
	}{
		"spec": {update, func(t *testing.T, name string) {
			b.patch(t, b.provider(t, name), `{"spec":{"revisionHistoryLimit":7}}`)
		}, "changed since the plan: the field revisionHistoryLimit in the spec of the package was 1 and is 7\n"},
		"generation": {update, func(t *testing.T, name string) {
			b.patch(t, b.provider(t, name), `{"spec":{"revisionHistoryLimit":7}}`)
			b.patch(t, b.provider(t, name), `{"spec":{"revisionHistoryLimit":1}}`)
		}, "changed since the plan: the generation of the package was 1 and is 3\n"},
		"recreated": {update, func(t *testing.T, name string) {
			ref := b.provider(t, name).Spec.Package
			b.must(t, 0, "uninstall", "provider", name, "--wait", "1m")
			b.must(t, 0, "install", "provider", ref, name, "--wait", "1m")
		}, "changed since the plan: the UID of the package was "},
		"uninstalled": {update, func(t *testing.T, name string) {
			b.must(t, 0, "uninstall", "provider", name, "--wait", "1m")
		}, "changed since the plan: the operation was update and is install\n"},
		"object": {update, func(t *testing.T, name string) {
			b.patch(t, definition("kepts."+name+".apply.test"), `{"metadata":{"annotations":{"somebody":"was here"}}}`)
		}, "changed since the plan: the change of CustomResourceDefinition kepts."},
		"taken": {update, func(t *testing.T, name string) {
			crd := definition("addeds." + name + ".apply.test")
			crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
				Group: name + ".apply.test", Scope: apiextensionsv1.ClusterScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{
					Kind: "Added", ListKind: "AddedList", Plural: "addeds", Singular: "added",
				},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
					{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
						OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
					}}},
			}
			if err := b.client.Create(t.Context(), crd); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.client.Delete(t.Context(), crd) })
		}, "exists and belongs to no package"},
		"revision": {update, func(t *testing.T, name string) {
			rev := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: name + "-000000000000", Labels: map[string]string{
				v1.LabelPackage: name,
			}}}
			rev.Spec.DesiredState, rev.Spec.Image, rev.Spec.Revision = v1.RevisionInactive, other, 0
			if err := b.client.Create(t.Context(), rev); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.client.Delete(t.Context(), rev) })
		}, "-000000000000 was absent and is Inactive with number 0\n"},
		"neighbor": {func(t *testing.T, name string) []string {
			b.pushDependent(t, name, "v2", b.registry+"/other", "Kept", "Added")
			return update(t, name)
		}, func(t *testing.T, name string) {
			b.must(t, 0, "install", "provider", other, "visitor", "--wait", "1m")
			t.Cleanup(func() { b.run(t, b.kubeconfig, "uninstall", "provider", "visitor") })
		}, "changed since the plan: the installed provider/visitor was absent and is "},
		"resources": {uninstall, func(t *testing.T, name string) {
			o := &unstructured.Unstructured{}
			o.SetAPIVersion(name + ".apply.test/v1")
			o.SetKind("Kept")
			o.SetName("one")
			if err := b.client.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}, "changed since the plan: the number of custom resources to delete with kepts.resources.apply.test was 0 and is 1\n"},
		"updated": {uninstall, func(t *testing.T, name string) {
			b.must(t, 0, "update", name, "v2", "--yes", "--wait", "1m")
		}, "changed since the plan: the installed version was "},
	} {
		t.Run(name, func(t *testing.T) {
			v1 := b.push(t, name, "v1", "Kept", "Dropped")
			b.push(t, name, "v2", "Kept", "Added")
			b.must(t, 0, "install", "provider", v1, name, "--wait", "1m")
			t.Cleanup(func() {
				b.run(t, b.kubeconfig, "uninstall", "provider", name, "--yes", "--on-delete", "cascade=100", "--wait", "1m")
			})
			file := filepath.Join(t.TempDir(), "plan.json")
			b.must(t, 2, append(tc.plan(t, name), "--out", file)...)
			tc.move(t, name)
			before := b.versions(t, name)
			e := b.must(t, 9, "apply", file)
			if !strings.Contains(e.errors, tc.want) || !strings.Contains(e.errors, "error: PlanMoved: ") {
				t.Errorf("it does not say %q:\n%s", tc.want, e.errors)
			}
			if after := b.versions(t, name); after != before {
				t.Errorf("something was written: the package was %s and is %s", before, after)
			}
		})
	}
}

// A plan of another cluster is refused, and writes nothing.
//
// hardening: L10
func TestApplyRefusesAPlanOfAnotherCluster(t *testing.T) {
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "plan.json")
	b.must(t, 2, "plan", "install", "provider", b.push(t, "elsewhere", "v1", "Kept"), "elsewhere", "--out", file)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	plans, _, err := planner.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	p := plans[0]
	p.Cluster = "11111111-2222-3333-4444-555555555555"
	if raw, err = planner.Encode(p); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := b.must(t, 9, "apply", file); !strings.Contains(e.errors, "the cluster was "+string(p.Cluster)) ||
		!strings.Contains(e.errors, "error: PlanMoved: ") {
		t.Errorf("the error does not name the cluster:\n%s", e.errors)
	}
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: "elsewhere"}, &v1.Provider{}); !apierrors.IsNotFound(err) {
		t.Errorf("something was written: %v", err)
	}
}

// The plans of several packages are saved, reviewed and applied as one. They are carried out only if all of them are as
// they were planned, a second time changes nothing, and the rest is carried out if some of them are carried out
// already.
func TestPlansOfSeveralPackagesAreAppliedTogether(t *testing.T) {
	b := newBench(t)
	first, second := b.push(t, "boat", "v1", "Kept"), b.push(t, "raft", "v1", "Kept")
	b.must(t, 0, "install", "provider", first, "boat", "--wait", "1m")
	b.must(t, 0, "install", "provider", second, "raft", "--wait", "1m")
	b.push(t, "boat", "v2", "Kept")
	b.push(t, "raft", "v2", "Kept")
	version := func(name string) string {
		t.Helper()
		p := &v1.Provider{}
		if err := b.client.Get(t.Context(), client.ObjectKey{Name: name}, p); err != nil {
			t.Fatal(err)
		}
		return p.Spec.Package
	}
	file := filepath.Join(t.TempDir(), "plans.json")
	e := b.must(t, 2, "plan", "update", "boat@v2", "raft@v2", "--out", file, "-o", "markdown")
	if !strings.Contains(e.out, "### Plan: update provider/boat") ||
		!strings.Contains(e.out, "### Plan: update provider/raft") ||
		!strings.Contains(e.errors, "apply it with `xpkg apply ") {
		t.Errorf("the plans:\n%s%s", e.out, e.errors)
	}

	b.must(t, 0, "update", "raft", "--revision-history-limit", "3", "--yes")
	if e := b.must(t, 9, "apply", file); !strings.Contains(e.errors, "error: PlanMoved: ") ||
		!strings.Contains(e.errors, "Make the plans again") {
		t.Errorf("stale plans:\n%s", e.errors)
	}
	if !strings.HasSuffix(version("boat"), ":v1") {
		t.Errorf("stale plans have written %s", version("boat"))
	}

	b.must(t, 2, "plan", "update", "boat@v2", "raft@v2", "--out", file)
	b.must(t, 0, "apply", file, "--wait", "1m")
	for _, name := range []string{"boat", "raft"} {
		if got := version(name); !strings.Contains(got, ":v2@sha256:") {
			t.Errorf("%s is at %s", name, got)
		}
	}
	if e := b.must(t, 0, "apply", file); !strings.Contains(e.errors, "already applied") ||
		strings.Contains(e.out, "updated") {
		t.Errorf("a second time:\n%s%s", e.out, e.errors)
	}

	b.must(t, 2, "plan", "uninstall", "boat", "raft", "--out", file)
	b.must(t, 0, "uninstall", "boat", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
	if e := b.must(t, 0, "apply", file, "--wait", "1m"); e.out != "provider/raft gone\nprovider/boat gone\n" {
		t.Errorf("the rest of the plans:\n%s%s", e.out, e.errors)
	}
}

// Changes of unrelated packages do not make a plan stale.
func TestApplyIgnoresUnrelatedPackages(t *testing.T) {
	b := newBench(t)
	stranger, asked := b.push(t, "stranger", "v1", "Kept"), b.push(t, "asked", "v1", "Kept")
	file := filepath.Join(t.TempDir(), "plan.json")
	b.must(t, 2, "plan", "install", "provider", asked, "asked", "--out", file)
	b.must(t, 0, "install", "provider", stranger, "stranger", "--wait", "1m")
	b.must(t, 0, "apply", file, "--wait", "1m")
	for _, name := range []string{"stranger", "asked"} {
		b.must(t, 0, "uninstall", "provider", name, "--yes", "--on-delete", "cascade=100", "--wait", "1m")
	}
}

// --out - writes the plan to standard output and the description of it to standard
// error, and creates no file.
func TestPlanGoesToStandardOutput(t *testing.T) {
	b := newBench(t)
	asked := b.push(t, "streamed", "v1", "Kept")
	t.Chdir(t.TempDir())
	e := b.must(t, 2, "plan", "install", "provider", asked, "streamed", "--out", "-")
	if _, _, err := planner.Decode([]byte(e.out)); err != nil || !strings.Contains(e.errors, "streamed") {
		t.Errorf("%v\nstandard output: %s\nstandard error: %s", err, e.out, e.errors)
	}
	if _, err := os.Lstat("-"); err == nil {
		t.Error("a file named - was created")
	}
	if e := b.must(t, 3, "plan", "install", "provider", asked, "streamed", "--out", "-", "-o", "yaml"); e.out != "" {
		t.Errorf("standard output: %s", e.out)
	}
}

// A label that a tool puts on the package meanwhile is no reason to refuse, and stays.
func TestApplyKeepsLabels(t *testing.T) {
	b := newBench(t)
	b.must(t, 0, "install", "provider", b.push(t, "labeled", "v1", "Kept"), "labeled", "--wait", "1m")
	b.push(t, "labeled", "v2", "Kept", "Added")
	file := filepath.Join(t.TempDir(), "plan.json")
	b.must(t, 2, "plan", "update", "labeled", "v2", "--out", file)
	b.patch(t, b.provider(t, "labeled"), `{"metadata":{"labels":{"argocd.argoproj.io/instance":"a"}}}`)
	b.must(t, 0, "apply", file, "--wait", "1m")
	if got := b.provider(t, "labeled").Labels["argocd.argoproj.io/instance"]; got != "a" {
		t.Errorf("the label is %q", got)
	}
	b.must(t, 0, "uninstall", "provider", "labeled", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
}

// versions returns the generation of each package.
func (b bench) versions(t *testing.T, name string) string {
	t.Helper()
	p := &v1.Provider{}
	err := b.client.Get(t.Context(), client.ObjectKey{Name: name}, p)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %d %v", p.UID, p.Generation, p.DeletionTimestamp != nil)
}

// The planned content is installed also when the tag has moved, and it is an error
// only when it cannot be had any more.
//
// hardening: A20, G10
func TestApplyWhenTheTagHasMoved(t *testing.T) {
	b := newBench(t)
	ref := b.push(t, "tagged", "v1", "Kept")
	file := filepath.Join(t.TempDir(), "plan.json")
	b.must(t, 2, "plan", "install", "provider", ref, "tagged", "--out", file)
	var planned struct{ Content struct{ Digest string } }
	raw, err := os.ReadFile(file)
	if err := errors.Join(err, json.Unmarshal(raw, &planned)); err != nil {
		t.Fatal(err)
	}
	b.push(t, "tagged", "v1", "Kept", "Other")
	e := b.must(t, 0, "apply", file, "--wait", "1m")
	t.Cleanup(func() {
		b.run(t, b.kubeconfig, "uninstall", "provider", "tagged", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
	})
	if !strings.Contains(e.errors, "note: The tag v1 has moved: ") {
		t.Errorf("it does not say that the tag has moved:\n%s", e.errors)
	}
	p := b.provider(t, "tagged")
	if p.Spec.Package != ref+"@"+planned.Content.Digest || p.Status.ResolvedDigest != planned.Content.Digest {
		t.Errorf("%s is installed, with %s; planned was %s", p.Spec.Package, p.Status.ResolvedDigest, planned.Content.Digest)
	}

	lost := b.push(t, "lost", "v1", "Kept")
	b.must(t, 2, "plan", "install", "provider", lost, "lost", "--out", file)
	forget(t, lost)
	if err := os.RemoveAll(filepath.Join(b.dir, "user")); err != nil {
		t.Fatal(err)
	}
	if e := b.must(t, 5, "apply", file); !strings.Contains(e.errors, "error: ManifestNotFound: ") {
		t.Errorf("it does not say that the content is gone:\n%s", e.errors)
	}
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: "lost"}, &v1.Provider{}); !apierrors.IsNotFound(err) {
		t.Errorf("something was written: %v", err)
	}
}

// forget removes a tag and its content from the registry.
func forget(t *testing.T, ref string) {
	t.Helper()
	remote := remote.New(remote.Options{})
	defer remote.Close()
	parsed := oci.MustParseReference(ref)
	d, err := remote.Resolve(t.Context(), parsed)
	if err != nil {
		t.Fatal(err)
	}
	target := fmt.Sprintf("http://%s/v2/%s/manifests/%s", parsed.Registry, parsed.Repository, d.Digest)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		t.Fatalf("the registry does not forget: %s", res.Status)
	}
}

// A guillotine is a way to the API server that is cut at a call: that one is not
// carried out, or its answer is lost, and nothing after it arrives.
type guillotine struct {
	mu      sync.Mutex
	left    int
	commits bool
	dead    bool
	writes  int
	proxy   *httputil.ReverseProxy
	server  *httptest.Server
}

func (g *guillotine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	dead, last := g.dead, !g.dead && g.left == 0
	g.left--
	g.dead = g.dead || last
	pass := !dead && (!last || g.commits)
	if pass && r.Method != http.MethodGet {
		g.writes++
	}
	g.mu.Unlock()
	if pass && !last {
		g.proxy.ServeHTTP(w, r)
		return
	}
	if pass {
		g.proxy.ServeHTTP(httptest.NewRecorder(), r)
	}
	// New connections fail, and this connection ends without a response.
	_ = g.server.Listener.Close()
	panic(http.ErrAbortHandler)
}

// saw returns the number of writes that have arrived, and whether the connection was cut.
func (g *guillotine) saw() (writes int, dead bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.writes, g.dead
}

// serve returns the kubeconfig of a proxy that cuts the connection at call n.
func (b bench) serve(t *testing.T, n int, commits bool) (*guillotine, string) {
	t.Helper()
	g := &guillotine{left: n, commits: commits, proxy: b.forward(t)}
	g.server = httptest.NewServer(g)
	t.Cleanup(g.server.Close)
	return g, kubeconfigOf(t, g.server)
}

// forward returns a proxy to the API server.
func (b bench) forward(t *testing.T) *httputil.ReverseProxy {
	t.Helper()
	target, err := url.Parse(b.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	if proxy.Transport, err = rest.TransportFor(b.config); err != nil {
		t.Fatal(err)
	}
	return proxy
}

// kubeconfigOf returns a kubeconfig for a server without credentials.
func kubeconfigOf(t *testing.T, server *httptest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a}}]
clusters: [{name: a, cluster: {server: %q}}]
`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// An apply that is cut off at any of its calls has written everything or nothing,
// since it writes once; the next apply ends the same way.
//
// hardening: L3
func TestApplyCutOffAtEveryCall(t *testing.T) {
	b := newBench(t)
	v1 := b.push(t, "cut", "v1", "Kept")
	b.push(t, "cut", "v2", "Kept", "Added")
	install := func() (plan string) {
		plan = filepath.Join(t.TempDir(), "plan.json")
		b.must(t, 0, "install", "provider", v1, "cut", "--wait", "1m")
		b.must(t, 2, "plan", "update", "cut", "v2", "--out", plan)
		return plan
	}
	stride := 3
	if lane.IsFull() {
		stride = 1
	}
	for _, commits := range []bool{false, true} {
		plan := install()
		before := b.provider(t, "cut")
		for n := 0; ; n += stride {
			g, kubeconfig := b.serve(t, n, commits)
			e := b.run(t, kubeconfig, "apply", plan)
			after := b.provider(t, "cut")
			writes, dead := g.saw()
			if writes > 1 || after.Generation-before.Generation != int64(writes) {
				t.Errorf(
					"call %d: %d writes, and the generation went from %d to %d", n, writes, before.Generation, after.Generation,
				)
			}
			if dead == (e.code == 0) {
				t.Errorf("call %d, cut off %v: exit code %d\n%s", n, dead, e.code, e.errors)
			}
			if writes == 0 {
				continue // The next apply finds everything as it was.
			}
			b.must(t, 0, "apply", plan, "--wait", "1m")
			if is := b.provider(t, "cut"); !strings.HasPrefix(is.Spec.Package, strings.TrimSuffix(v1, "v1")+"v2@sha256:") ||
				is.Generation != after.Generation {
				t.Errorf("call %d: in the end there is %s", n, is.Spec.Package)
			}
			b.must(t, 0, "uninstall", "provider", "cut", "--wait", "1m")
			b.gone(t, "cut")
			if !dead {
				t.Logf("answers lost %v: %d calls, one of %d cut off", commits, n, stride)
				break
			}
			plan = install()
			before = b.provider(t, "cut")
		}
	}
}
