package deployment_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// testEnv is a runtime on a real API server, in its own namespace. It has no kubelet: the
// test sets the status of pods.
type testEnv struct {
	*testing.T
	*env.Env
	runtime *deployment.Runtime
	audit   *env.Audit
	name    string
}

func newEnv(t *testing.T) *testEnv {
	t.Helper()
	t.Parallel()
	s := &testEnv{T: t, Env: env.New(t), audit: &env.Audit{}, name: fmt.Sprintf("t%d", tests.Add(1))}
	s.InstallPackageAPI(t)
	c := env.NewClient(t, s.audit.Wrap(s.Config))
	s.runtime = &deployment.Runtime{Client: c, Pods: c, Namespace: s.name}
	s.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	return s
}

// tests counts tests, so that each uses unique names.
var tests atomic.Int32

// takeWrites returns the writes of the runtime since the last call, in the form "PUT services".
func (s *testEnv) takeWrites() []string {
	var out []string
	for _, c := range s.audit.Calls("") {
		if c.Method != http.MethodGet && !c.DryRun {
			out = append(out, c.Method+" "+c.Resource)
		}
	}
	s.audit.Reset("")
	return out
}

func (s *testEnv) get(o client.Object, name string) {
	s.Helper()
	if err := s.Client.Get(s.Context(), client.ObjectKey{Namespace: s.name, Name: name}, o); err != nil {
		s.Fatal(err)
	}
}

// missing reports whether there is no such object.
func (s *testEnv) missing(o client.Object, name string) bool {
	s.Helper()
	err := s.Client.Get(s.Context(), client.ObjectKey{Namespace: s.name, Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	return err != nil
}

// change updates a Deployment as another client would.
func (s *testEnv) change(name string, do func(*appsv1.Deployment)) {
	s.Helper()
	live := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: name}}
	env.Update(s, s.Env, live, do)
}

func (s *testEnv) update(o client.Object) {
	s.Helper()
	if err := s.Client.Update(s.Context(), o); err != nil {
		s.Fatal(err)
	}
}

// pkg creates a package of a kind with revisions, and returns a requester for each
// revision. Package names are unique across tests, because packages are cluster-scoped.
func (s *testEnv) pkg(kind, name string, revisions ...string) (v1.Package, []plan.Requester) {
	s.Helper()
	p := v1.NewPackage(kind)
	p.SetName(s.name + "-" + name)
	p.PackageSpec().Package = "registry.example.org/" + name + ":v1"
	s.Create(s, p)
	var all []v1.PackageRevision
	for _, r := range revisions {
		rev := p.NewRevision()
		rev.SetName(p.GetName() + "-" + r)
		rev.SetLabels(map[string]string{v1.LabelPackage: p.GetName()})
		rev.RevisionSpec().DesiredState, rev.RevisionSpec().Image = v1.RevisionInactive, p.PackageSpec().Package
		s.Create(s, rev)
		all = append(all, rev)
	}
	var who []plan.Requester
	for _, rev := range all {
		who = append(who, revision.Requester(p, rev, all))
	}
	return p, who
}

// input returns the input for a runtime of a requester.
func (s *testEnv) input(who plan.Requester) manifests.Input {
	return manifests.Input{
		Owner: who, Namespace: s.name, Image: "registry.example.org/x" + digest,
		TLSServerSecret: who.Package.Name + "-tls-server", TLSClientSecret: who.Package.Name + "-tls-client",
	}
}

func (s *testEnv) objects(in manifests.Input) manifests.Objects {
	s.Helper()
	o, err := manifests.Build(in)
	if err != nil {
		s.Fatal(err)
	}
	return o
}

// ensure ensures a runtime. It retries on conflicts, which the controllers of the cluster
// cause.
func (s *testEnv) ensure(in manifests.Input) runtime.State {
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
func (s *testEnv) run(in manifests.Input) {
	s.Helper()
	wait.Until(s.T, env.Limit, "the runtime is available", func() (string, bool) {
		state := s.ensure(in)
		for _, p := range s.pods(in.Owner.Revision.Name) {
			s.report(&p, corev1.PodStatus{
				Phase: corev1.PodRunning,
				Conditions: []corev1.PodCondition{{
					Type: corev1.PodReady, Status: corev1.ConditionTrue,
					LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Minute)),
				}},
			})
		}
		return state.Message, state.Available
	})
}

// report writes the status of a pod, as a kubelet would.
func (s *testEnv) report(p *corev1.Pod, status corev1.PodStatus) {
	s.Helper()
	p.Status = status
	if err := s.Client.Status().Update(s.Context(), p); err != nil && !isStale(err) {
		s.Fatal(err)
	}
}

func (s *testEnv) pods(revision string) []corev1.Pod {
	s.Helper()
	var pods corev1.PodList
	if err := s.Client.List(s.Context(), &pods, client.InNamespace(s.name), client.MatchingLabels{
		v1.LabelRevision: revision,
	}); err != nil {
		s.Fatal(err)
	}
	return pods.Items
}
