package deployment_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/packageapi"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// patience is for a machine that is busy.
const patience = time.Minute

// env is a runtime on a real API server, in its own namespace. It has no kubelet: the
// test sets the status of pods.
type env struct {
	*testing.T
	client  client.WithWatch
	runtime *deployment.Runtime
	writes  *writes
	name    string
}

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	cfg := cluster.Start(t)
	install(t, cfg)
	w := &writes{}
	s := &env{T: t, client: newClient(t, cfg), writes: w, name: fmt.Sprintf("t%d", tests.Add(1))}
	counted := rest.CopyConfig(cfg)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{w, next} })
	c := newClient(t, counted)
	s.runtime = &deployment.Runtime{Client: c, Pods: c, Namespace: s.name}
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	return s
}

// tests counts tests, so that each uses unique names.
var tests atomic.Int32

var installed struct {
	sync.Once
	err error
}

// install installs the package API, so that owners are real and the garbage
// collector does its work.
func install(t *testing.T, cfg *rest.Config) {
	t.Helper()
	installed.Do(func() {
		c, err := apply.NewCluster(cfg)
		if err == nil {
			_, err = packageapi.Install(context.Background(), c, false)
		}
		installed.err = err
	})
	if installed.err != nil {
		t.Fatal(installed.err)
	}
}

func newClient(t *testing.T, cfg *rest.Config) client.WithWatch {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err == nil {
		err = errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme))
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *env) create(o client.Object) {
	s.Helper()
	if err := s.client.Create(s.Context(), o); err != nil {
		s.Fatal(err)
	}
}

func (s *env) get(o client.Object, name string) {
	s.Helper()
	if err := s.client.Get(s.Context(), client.ObjectKey{Namespace: s.name, Name: name}, o); err != nil {
		s.Fatal(err)
	}
}

// missing reports whether there is no such object.
func (s *env) missing(o client.Object, name string) bool {
	s.Helper()
	err := s.client.Get(s.Context(), client.ObjectKey{Namespace: s.name, Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	return err != nil
}

// change updates a Deployment as another client would.
func (s *env) change(name string, do func(*appsv1.Deployment)) {
	s.Helper()
	wait.Until(s.T, patience, "the Deployment is changed", func() (string, bool) {
		live := &appsv1.Deployment{}
		s.get(live, name)
		do(live)
		err := s.client.Update(s.Context(), live)
		if err != nil && !isStale(err) {
			s.Fatal(err)
		}
		return "conflict", err == nil
	})
}

func (s *env) update(o client.Object) {
	s.Helper()
	if err := s.client.Update(s.Context(), o); err != nil {
		s.Fatal(err)
	}
}

// pkg creates a package of a kind with revisions, and returns a requester for each
// revision. Package names are unique across tests, because packages are cluster-scoped.
func (s *env) pkg(kind, name string, revisions ...string) (v1.Package, []plan.Requester) {
	s.Helper()
	p := v1.NewPackage(kind)
	p.SetName(s.name + "-" + name)
	p.PackageSpec().Package = "registry.example.org/" + name + ":v1"
	s.create(p)
	var all []v1.PackageRevision
	for _, r := range revisions {
		rev := p.NewRevision()
		rev.SetName(p.GetName() + "-" + r)
		rev.SetLabels(map[string]string{v1.LabelPackage: p.GetName()})
		rev.RevisionSpec().DesiredState, rev.RevisionSpec().Image = v1.RevisionInactive, p.PackageSpec().Package
		s.create(rev)
		all = append(all, rev)
	}
	var who []plan.Requester
	for _, rev := range all {
		who = append(who, revision.Requester(p, rev, all))
	}
	return p, who
}

// input returns the input for a runtime of a requester.
func (s *env) input(who plan.Requester) manifests.Input {
	return manifests.Input{
		Owner: who, Namespace: s.name, Image: "registry.example.org/x" + digest,
		TLSServerSecret: who.Package.Name + "-tls-server", TLSClientSecret: who.Package.Name + "-tls-client",
	}
}

func (s *env) objects(in manifests.Input) manifests.Objects {
	s.Helper()
	o, err := manifests.Build(in)
	if err != nil {
		s.Fatal(err)
	}
	return o
}

// ensure ensures a runtime. It retries on conflicts, which the controllers of the cluster
// cause.
func (s *env) ensure(in manifests.Input) runtime.State {
	s.Helper()
	for {
		state, err := s.runtime.Ensure(s.Context(), s.objects(in))
		if err == nil {
			return state
		}
		if !errors.Is(err, apply.ErrMoved) {
			s.Fatal(err)
		}
	}
}

// run makes the pods of a revision ready, and waits until the runtime is available.
func (s *env) run(in manifests.Input) {
	s.Helper()
	wait.Until(s.T, patience, "the program is available", func() (string, bool) {
		state := s.ensure(in)
		for _, p := range s.pods(in.Owner.Revision.Name) {
			s.report(&p, corev1.PodStatus{
				Phase:      corev1.PodRunning,
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Minute))}},
			})
		}
		return state.Message, state.Available
	})
}

// report writes the status of a pod, as a kubelet would.
func (s *env) report(p *corev1.Pod, status corev1.PodStatus) {
	s.Helper()
	p.Status = status
	if err := s.client.Status().Update(s.Context(), p); err != nil && !isStale(err) {
		s.Fatal(err)
	}
}

func (s *env) pods(revision string) []corev1.Pod {
	s.Helper()
	var pods corev1.PodList
	if err := s.client.List(s.Context(), &pods, client.InNamespace(s.name), client.MatchingLabels{v1.LabelRevision: revision}); err != nil {
		s.Fatal(err)
	}
	return pods.Items
}

// writes are the objects that the runtime has written.
type writes struct {
	mu  sync.Mutex
	all []string
}

// take returns the writes since the last call.
func (w *writes) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.all
	w.all = nil
	return out
}

type counting struct {
	writes *writes
	next   http.RoundTripper
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := c.next.RoundTrip(r)
	if err == nil && r.Method != http.MethodGet && res.StatusCode < 300 && !r.URL.Query().Has("dryRun") {
		c.writes.mu.Lock()
		defer c.writes.mu.Unlock()
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		kind := parts[len(parts)-1]
		if r.Method != http.MethodPost {
			kind = parts[len(parts)-2]
		}
		c.writes.all = append(c.writes.all, r.Method+" "+kind)
	}
	return res, err
}
