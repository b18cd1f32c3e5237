package deployment_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// A package whose configuration names an object of another package's runtime writes nothing, not even a certificate,
// also if its runtime runs already.
func TestNamesOfOtherPackagesAreRefused(t *testing.T) {
	s := newEnv(t)
	_, victim := s.pkg("Provider", "victim", "1")
	_, evil := s.pkg("Provider", "evil", "1")
	s.ensure(s.input(victim[0]))
	s.ensure(s.input(evil[0]))
	revision, pkg := victim[0].Revision.Name, victim[0].Package.Name
	for name, tc := range map[string]struct {
		config v1beta1.DeploymentRuntimeConfigSpec
		want   error
	}{
		"ServiceAccount": {named("", revision).Spec, manifests.ErrPrivileges},
		"ServiceAccountOfThePod": {
			v1beta1.DeploymentRuntimeConfigSpec{DeploymentTemplate: accountOf(revision)}, manifests.ErrPrivileges,
		},
		"Deployment": {named(revision, "").Spec, deployment.ErrNameConflict},
		"Service": {v1beta1.DeploymentRuntimeConfigSpec{
			ServiceTemplate: &v1beta1.ServiceTemplate{Metadata: &v1beta1.ObjectMeta{Name: &pkg}},
		}, deployment.ErrNameConflict},
	} {
		t.Run(name, func(t *testing.T) {
			in := s.input(evil[0])
			in.Config = &v1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: "steal"}, Spec: tc.config}
			o := s.objects(in)
			s.takeWrites()
			for range 2 {
				_, err := s.runtime.Ensure(t.Context(), o)
				if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), "ProviderRevision/"+revision) {
					t.Errorf("got %v, want %v that names %s", err, tc.want, revision)
				}
			}
			check := s.runtime.CheckAccepted
			if errors.Is(tc.want, manifests.ErrPrivileges) {
				check = s.runtime.CheckServiceAccount
			}
			if err := check(t.Context(), o); !errors.Is(err, tc.want) {
				t.Errorf("before the first write: %v", err)
			}
			if got := s.takeWrites(); len(got) > 0 {
				t.Errorf("written: %v", got)
			}
		})
	}
}

// With the privilege ServiceAccount, a runtime uses the ServiceAccount of another package without becoming an owner of
// it.
func TestBorrowedAccountKeepsItsOwners(t *testing.T) {
	s := newEnv(t)
	s.runtime.Privileges = []manifests.Privilege{manifests.ServiceAccount}
	_, lender := s.pkg("Provider", "lender", "1")
	_, borrower := s.pkg("Provider", "borrower", "1")
	in := s.input(borrower[0])
	in.Config = named("", lender[0].Revision.Name)
	s.run(s.input(lender[0]))
	before, after := &corev1.ServiceAccount{}, &corev1.ServiceAccount{}
	s.get(before, lender[0].Revision.Name)
	for range 3 {
		s.run(in)
		s.ensure(s.input(lender[0]))
	}
	s.get(after, lender[0].Revision.Name)
	if diff := cmp.Diff(before.ObjectMeta, after.ObjectMeta); diff != "" {
		t.Errorf("the ServiceAccount of another package was written:\n%s", diff)
	}
	// A package whose configuration names no ServiceAccount does not borrow one.
	env.Update(s, s.Env, after, func(a *corev1.ServiceAccount) {
		a.OwnerReferences = []metav1.OwnerReference{borrower[0].Revision.Reference(true)}
	})
	if _, err := s.runtime.Ensure(
		t.Context(), s.objects(s.input(lender[0])),
	); !errors.Is(err, deployment.ErrNameConflict) {
		t.Errorf("with a ServiceAccount of another package under the name of its revision: %v", err)
	}
}

// A write that is based on an earlier state of an object never changes its owners: the API server refuses it.
func TestAccountTakenInTheMeantime(t *testing.T) {
	s := newEnv(t)
	for _, exists := range []bool{false, true} {
		raced := fmt.Sprintf("raced-%t", exists)
		_, a := s.pkg("Provider", "a-"+raced, "1")
		_, b := s.pkg("Provider", "b-"+raced, "1")
		if exists {
			// Without owners, either package may take it.
			s.Create(s,
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: raced, Annotations: map[string]string{
					manifests.ConfigAnnotation: "DeploymentRuntimeConfig/", "xpkg.dev/content-digest": "x",
				}}})
		}
		one, other := s.input(a[0]), s.input(b[0])
		one.Config, other.Config = named("", raced), named("", raced)
		late := &deployment.Runtime{Pods: s.runtime.Pods, Namespace: s.name}
		late.Client = readBefore{s.runtime.Client, func() { s.ensure(one) }}
		if _, err := late.Ensure(t.Context(), s.objects(other)); !isStale(errors.Unwrap(err)) &&
			!strings.Contains(err.Error(), "already exists") {
			t.Errorf("exists %t: %v", exists, err)
		}
		live := &corev1.ServiceAccount{}
		s.get(live, raced)
		if c := metav1.GetControllerOf(live); c == nil || c.Name != a[0].Revision.Name {
			t.Errorf("exists %t: owners %v", exists, live.OwnerReferences)
		}
	}
}

// readBefore lets another client write right before the first write.
type readBefore struct {
	client.Client
	write func()
}

func (r readBefore) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	r.write()
	return r.Client.Create(ctx, o, opts...)
}

func (r readBefore) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	r.write()
	return r.Client.Update(ctx, o, opts...)
}

// The pods of a ServiceAccount that is created again are replaced once, because their tokens are not valid any more,
// and the runtime is not available until then.
func TestPodsFollowTheirAccount(t *testing.T) {
	for name, recreate := range map[string]func(s *testEnv, account string){
		"ByTheManager": func(*testEnv, string) {},
		"ByAUser": func(s *testEnv, account string) {
			s.Create(s, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: account}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			s.runtime.Privileges = []manifests.Privilege{manifests.ServiceAccount}
			_, who := s.pkg("Provider", "p", "1")
			in := s.input(who[0])
			account := who[0].Revision.Name
			s.run(in)
			first := s.podUIDs(account)
			s.run(in)
			if diff := cmp.Diff(first, s.podUIDs(account)); diff != "" {
				t.Fatalf("pods were replaced without a reason:\n%s", diff)
			}
			if err := s.Client.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
				Namespace: s.name, Name: account,
			}}); err != nil {
				t.Fatal(err)
			}
			recreate(s, account)
			if state := s.ensure(in); state.Available {
				t.Errorf("available with pods of the former ServiceAccount: %+v", state)
			}
			s.get(&corev1.ServiceAccount{}, account)
			wait.Until(t, env.Limit, "the pods are replaced", func() (string, bool) {
				s.run(in)
				for uid := range s.podUIDs(account) {
					if first[uid] {
						return "a former pod is left", false
					}
				}
				return "", true
			})
			s.run(in)
			second := s.podUIDs(account)
			s.takeWrites()
			s.run(in)
			if diff := cmp.Diff(second, s.podUIDs(account)); diff != "" || len(s.takeWrites()) > 0 {
				t.Errorf("something was written again, or pods were replaced:\n%s", diff)
			}
		})
	}
}

// A runtime whose ServiceAccount another system manages is not available without it.
func TestMissingAccount(t *testing.T) {
	s := newEnv(t)
	s.runtime.Privileges = []manifests.Privilege{manifests.ServiceAccount}
	_, who := s.pkg("Provider", "p", "1")
	in := s.input(who[0])
	in.Config = named("", "")
	in.Config.Spec.DeploymentTemplate = accountOf("elsewhere")
	theirs := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "elsewhere"}}
	s.Create(s, theirs)
	s.run(in)
	if err := s.Client.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if state := s.ensure(in); state.Available || !strings.Contains(state.Message, "elsewhere") {
		t.Errorf("without its ServiceAccount: %+v", state)
	}
}

// A manager of an earlier version recorded no ServiceAccount. Its Deployments are not written and their pods not
// replaced until the ServiceAccount is deleted.
func TestAccountOfAnEarlierManager(t *testing.T) {
	s := newEnv(t)
	_, who := s.pkg("Provider", "p", "1")
	in := s.input(who[0])
	s.run(in)
	account := who[0].Revision.Name
	s.change(account, func(d *appsv1.Deployment) { delete(d.Annotations, "xpkg.dev/runtime") })
	s.takeWrites()
	s.run(in)
	if got := s.takeWrites(); len(got) > 0 {
		t.Errorf("written: %v", got)
	}
	if err := s.Client.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.name, Name: account,
	}}); err != nil {
		t.Fatal(err)
	}
	if state := s.ensure(in); state.Available || state.Reason == "" {
		t.Errorf("state %+v", state)
	}
	live := &appsv1.Deployment{}
	s.get(live, account)
	if len(live.Spec.Template.Annotations["xpkg.dev/service-account"]) == 0 {
		t.Error("the pods are not replaced")
	}
}

// podUIDs returns the UIDs of the pods of a revision that are not being deleted.
func (s *testEnv) podUIDs(revision string) map[types.UID]bool {
	s.Helper()
	out := map[types.UID]bool{}
	for _, p := range s.pods(revision) {
		if p.DeletionTimestamp == nil {
			out[p.UID] = true
		}
	}
	return out
}
