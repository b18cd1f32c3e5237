package deployment_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// The Service of a function leads to the old version until the new one is
// available, and then to the new one, with one write.
func TestFunctionServiceMovesWhenNewVersionIsAvailable(t *testing.T) {
	s := newEnv(t)
	_, who := s.pkg("Function", "f", "1", "2")
	first, second := s.input(who[0]), s.input(who[1])
	s.run(first)
	seen := s.watchServices()
	s.ensure(second)
	if got := s.selected(who[0].Package.Name); got != who[0].Revision.Name {
		t.Errorf("the Service leads to %s before the new version answers, want %s", got, who[0].Revision.Name)
	}
	s.takeWrites()
	s.run(second)
	if diff := cmp.Diff([]string{"PUT services"}, s.takeWrites()); diff != "" {
		t.Errorf("writes of the hand-over (-want +got):\n%s", diff)
	}
	if got := s.selected(who[0].Package.Name); got != who[1].Revision.Name {
		t.Errorf("the Service leads to %s, want %s", got, who[1].Revision.Name)
	}
	for _, service := range seen() {
		if c := metav1.GetControllerOf(&service); c == nil || service.Spec.Selector[v1.LabelRevision] != c.Name {
			t.Errorf("a Service that leads to %s, of %v", service.Spec.Selector, service.OwnerReferences)
		}
	}
}

// A provider's webhooks are served by the running version, also while it starts.
func TestProviderServiceMovesWhenOldVersionIsDown(t *testing.T) {
	s := newEnv(t)
	_, who := s.pkg("Provider", "p", "1", "2")
	s.run(s.input(who[0]))
	s.remove(who[0].Revision)
	s.ensure(s.input(who[1]))
	if got := s.selected(who[0].Package.Name); got != who[1].Revision.Name {
		t.Errorf("the Service leads to %s, want %s", got, who[1].Revision.Name)
	}
	live := &corev1.Service{}
	s.get(live, who[0].Package.Name)
	want := []metav1.OwnerReference{
		{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: who[1].Revision.Name, UID: who[1].Revision.UID, Controller: new(
			true,
		), BlockOwnerDeletion: new(true)},
		{APIVersion: "pkg.crossplane.io/v1", Kind: "Provider", Name: who[1].Package.Name, UID: who[1].Package.UID},
	}
	if diff := cmp.Diff(want, live.OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

// Edge case 103. A runtime is gone when none of its pods is left.
func TestRemoveKeepsOtherRevisions(t *testing.T) {
	s := newEnv(t)
	_, who := s.pkg("Function", "f", "1", "2")
	s.run(s.input(who[0]))
	s.run(s.input(who[1]))
	before := &appsv1.Deployment{}
	s.get(before, who[1].Revision.Name)
	s.remove(who[0].Revision)
	if !s.missing(&appsv1.Deployment{}, who[0].Revision.Name) || len(s.pods(who[0].Revision.Name)) > 0 {
		t.Error("the program was said to be gone, and is not")
	}
	after := &appsv1.Deployment{}
	s.get(after, who[1].Revision.Name)
	if after.UID != before.UID || len(s.pods(who[1].Revision.Name)) != 1 {
		t.Errorf("the Deployment of the other revision was touched")
	}
	// Shared objects stay, and the ServiceAccount is deleted with its revision.
	s.get(&corev1.Service{}, who[0].Package.Name)
	s.get(&corev1.ServiceAccount{}, who[0].Revision.Name)
	s.takeWrites()
	if gone, err := s.runtime.Remove(t.Context(), who[0].Revision); !gone || err != nil || len(s.takeWrites()) > 0 {
		t.Errorf("removed again: gone %t, %v", gone, err)
	}
	// An owner whose name is longer than a label never had a runtime.
	long := plan.Owner{APIVersion: who[0].Revision.APIVersion, Kind: who[0].Revision.Kind, Name: strings.Repeat("x", 253)}
	if gone, err := s.runtime.Remove(t.Context(), long); !gone || err != nil {
		t.Errorf("with a long name: gone %t, %v", gone, err)
	}
}

// A configuration can set the same name for the Deployments of all revisions.
func TestNameInUseByAnotherRevision(t *testing.T) {
	s := newEnv(t)
	_, who := s.pkg("Provider", "p", "1", "2")
	first, second := s.input(who[0]), s.input(who[1])
	first.Config, second.Config = named("one-name", ""), named("one-name", "")
	s.run(first)
	s.takeWrites()
	state := s.ensure(second)
	if state.HeldBy != who[0].Revision.Name || state.Reason != deployment.ReasonNameInUse {
		t.Errorf("state %+v, want one that is held by %s", state, who[0].Revision.Name)
	}
	if got := s.takeWrites(); len(got) > 0 {
		t.Errorf("written: %v, want nothing", got)
	}
	s.remove(who[0].Revision)
	s.run(second)
}

func TestScale(t *testing.T) {
	s := newEnv(t)
	_, who := s.pkg("Provider", "p", "1")
	s.run(s.input(who[0]))
	wait.Until(t, env.Limit, "no pod is left", func() (string, bool) {
		reached, err := s.runtime.Scale(t.Context(), who[0].Revision, 0)
		if err != nil && !isStale(err) {
			t.Log(err)
		}
		return "not reached", reached
	})
	if pods := s.pods(who[0].Revision.Name); len(pods) > 0 {
		t.Errorf("%d pods are left", len(pods))
	}
	s.run(s.input(who[0]))
}

// Edge case 102, and a ServiceAccount of another owner.
func TestServiceAccounts(t *testing.T) {
	t.Run("PullSecretsOfOthersStay", func(t *testing.T) {
		s := newEnv(t)
		_, who := s.pkg("Provider", "p", "1")
		in := s.input(who[0])
		in.PullSecrets = []string{"ours", "dropped"}
		s.ensure(in)
		live := &corev1.ServiceAccount{}
		s.get(live, who[0].Revision.Name)
		live.ImagePullSecrets = append(live.ImagePullSecrets, corev1.LocalObjectReference{Name: "theirs"})
		live.AutomountServiceAccountToken = new(true)
		s.update(live)
		s.takeWrites()
		s.ensure(in)
		if got := s.takeWrites(); len(got) > 0 {
			t.Errorf("a Secret of another owner caused the writes %v", got)
		}
		in.PullSecrets = []string{"ours", "new"}
		s.ensure(in)
		s.get(live, who[0].Revision.Name)
		want := []corev1.LocalObjectReference{{Name: "theirs"}, {Name: "ours"}, {Name: "new"}}
		if diff := cmp.Diff(want, live.ImagePullSecrets); diff != "" || live.AutomountServiceAccountToken == nil {
			t.Errorf("pull secrets (-want +got):\n%s", diff)
		}
	})
	t.Run("OfSomebodyElse", func(t *testing.T) {
		s := newEnv(t)
		_, who := s.pkg("Provider", "p", "1")
		theirs := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "theirs"}}
		s.Create(s, theirs)
		in := s.input(who[0])
		in.Config, in.PullSecrets = named("", "theirs"), []string{"x"}
		s.runtime.Privileges = []manifests.Privilege{manifests.ServiceAccount}
		s.run(in)
		live := &corev1.ServiceAccount{}
		s.get(live, "theirs")
		if live.ResourceVersion != theirs.ResourceVersion {
			t.Errorf("the ServiceAccount of another owner was written: %v", live)
		}
		if got := s.pods(who[0].Revision.Name)[0].Spec.ServiceAccountName; got != "theirs" {
			t.Errorf("the program runs as %s", got)
		}
	})
	t.Run("SharedByTwoPackages", func(t *testing.T) { sharedAccount(t) })
}

// Two packages with one ServiceAccount do not fight over it, and the one that stays
// keeps it (crossplane/crossplane#7769).
func sharedAccount(t *testing.T) {
	s := newEnv(t)
	p, a := s.pkg("Provider", "a", "1", "2")
	_, b := s.pkg("Provider", "b", "1")
	one, two, other := s.input(a[0]), s.input(a[1]), s.input(b[0])
	one.Config, two.Config, other.Config = named("", "shared"), named("", "shared"), named("", "shared")
	s.ensure(one)
	s.ensure(other)
	s.takeWrites()
	for range 3 {
		s.ensure(one)
		s.ensure(other)
	}
	if got := s.takeWrites(); len(got) > 0 {
		t.Errorf("two packages go on writing: %v", got)
	}
	live := &corev1.ServiceAccount{}
	s.get(live, "shared")
	uid := live.UID
	// A new version of the first package takes over, and then the package is deleted.
	s.ensure(two)
	s.get(live, "shared")
	if c := metav1.GetControllerOf(live); c == nil || c.Name != a[1].Revision.Name {
		t.Errorf("owners %v, want the new revision to control it", live.OwnerReferences)
	}
	if err := s.Client.Delete(t.Context(), p, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	for _, who := range a {
		rev := p.NewRevision()
		rev.SetName(who.Revision.Name)
		if err := s.Client.Delete(t.Context(), rev); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, env.Limit, "the second package controls the ServiceAccount", func() (string, bool) {
		s.ensure(other)
		s.get(live, "shared")
		c := metav1.GetControllerOf(live)
		return "controlled by another", c != nil && c.Name == b[0].Revision.Name
	})
	if live.UID != uid {
		t.Error("the ServiceAccount was made anew: the tokens of its pods are worth nothing now")
	}
}

func (s *testEnv) remove(revision plan.Owner) {
	s.Helper()
	wait.Until(s.T, env.Limit, "the program is gone", func() (string, bool) {
		gone, err := s.runtime.Remove(s.Context(), revision)
		if err != nil {
			return err.Error(), false
		}
		return "not gone", gone
	})
}

// selected returns the revision that a Service leads to.
func (s *testEnv) selected(name string) string {
	s.Helper()
	live := &corev1.Service{}
	s.get(live, name)
	return live.Spec.Selector[v1.LabelRevision]
}

// watchServices returns a function that returns every state of the Services in the
// namespace from now on.
func (s *testEnv) watchServices() func() []corev1.Service {
	s.Helper()
	w, err := s.Client.Watch(s.Context(), &corev1.ServiceList{}, client.InNamespace(s.name))
	if err != nil {
		s.Fatal(err)
	}
	var seen []corev1.Service
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if service, ok := e.Object.(*corev1.Service); ok {
				seen = append(seen, *service)
			}
		}
	}()
	return func() []corev1.Service {
		w.Stop()
		<-done
		return seen
	}
}
