package controller_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/testing/clock"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// clockAt gives the managers of an environment a clock for the policy.
func clockAt(s *testEnv, at string) *clock.Clock {
	c := clock.New()
	c.Set(instant(at))
	s.options.Now = c.Now
	return c
}

func instant(at string) time.Time {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		panic(err)
	}
	return t
}

// newPolicy creates the ChangePolicy, and waits until it is enforced.
func newPolicy(t *testing.T, s *testEnv, spec v1alpha1.ChangePolicySpec) *v1alpha1.ChangePolicy {
	t.Helper()
	p := &v1alpha1.ChangePolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ChangePolicyName}, Spec: spec}
	s.CreateTemporary(t, p)
	untilEnforced(t, s, p, v1alpha1.ReasonInForce)
	return p
}

func untilEnforced(t *testing.T, s *testEnv, p *v1alpha1.ChangePolicy, reason string) *metav1.Condition {
	t.Helper()
	var is *metav1.Condition
	wait.Until(t, limit, "the policy is "+reason, func() (string, bool) {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p)
		is = apimeta.FindStatusCondition(p.Status.Conditions, v1alpha1.TypeEnforced)
		return fmt.Sprint(err, is), err == nil && is != nil && is.Reason == reason && is.ObservedGeneration == p.Generation
	})
	return is
}

// named names the user of the client as the creator of a transaction.
func named(t *testing.T, s *testEnv, x *v1alpha1.Transaction) *v1alpha1.Transaction {
	t.Helper()
	user, err := apiserver.User(t.Context(), s.Client)
	if err != nil {
		t.Fatal(err)
	}
	x.Annotations = map[string]string{fence.AnnotationUser: user}
	return x
}

// untilMessage waits until a transaction waits with a message that has all parts.
func untilMessage(t *testing.T, s *testEnv, x *v1alpha1.Transaction, parts ...string) {
	t.Helper()
	wait.Until(t, limit, "the transaction "+x.Name+" waits", func() (string, bool) {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(x), x)
		return fmt.Sprintf("%v, %+v", err, x.Status), x.AwaitsPolicy() && containsAll(x.Status.Message, parts...)
	})
	if x.Status.StartTime != nil || x.Status.Holds != nil || x.Status.Packages != nil {
		t.Errorf("a transaction that waits holds packages: %+v", x.Status)
	}
}

// approver returns a client of a user who may approve the transactions with these names.
func approver(t *testing.T, s *testEnv, user string, names ...string) client.Client {
	t.Helper()
	env.Grant(t, s.Client, env.User(user),
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"transactions"}, Verbs: []string{"get", "patch", "update"}},
		rbacv1.PolicyRule{
			APIGroups: []string{v1alpha1.Group}, Resources: []string{"transactions"}, ResourceNames: names, Verbs: []string{"approve"},
		})
	return env.NewClient(t, env.AsUser(s.Config, user))
}

// A transaction outside of the windows waits until one opens, without holding its packages; approvals are given
// meanwhile. It is planned again when it starts, and an approval of another plan does not count.
func TestTransactionsFollowTheChangePolicy(t *testing.T) {
	s := newEnv(t)
	r := newRegistry(t)
	one, _ := r.push(t, "acme/policy-a:v1", configuration("policy-a", "policy-a.test", "one"))
	two, _ := r.push(t, "acme/policy-a:v2", configuration("policy-a", "policy-a.test", "two"))
	other, _ := r.push(t, "acme/policy-b:v1", configuration("policy-b", "policy-b.test", "one"))
	now := clockAt(s, "2026-12-03T12:00:00Z")
	s.start(t)
	a := env.NewPackage(v1.ConfigurationKind, "policy-a", one)
	s.CreateTemporary(t, a)
	t.Cleanup(func() { s.CleanUp(t, env.NewPackage(v1.ConfigurationKind, "policy-b", other)) })
	s.WaitReady(t, a)
	p := newPolicy(t, s, v1alpha1.ChangePolicySpec{
		TimeZone: "Europe/Berlin",
		Windows: []v1alpha1.ChangeWindow{{
			Days: []v1alpha1.Weekday{"Sat"}, From: "22:00", Duration: metav1.Duration{Duration: time.Hour},
		}},
		Approvals: []v1alpha1.NeededApproval{{For: []v1alpha1.ChangeClass{v1alpha1.RemovalChange}, People: 2}},
	})

	x := newTransaction("policy-x", wantPackage(v1.ConfigurationKind, "policy-b", other))
	x.Spec.Remove = []v1alpha1.RemovedPackage{{PackageName: v1alpha1.PackageName{Kind: v1.ConfigurationKind, Name: "policy-a"}}}
	s.CreateTemporary(t, named(t, s, x))
	untilMessage(t, s, x, "starts Sat 5 Dec 2026 22:00 CET, because no window for changes is open",
		"needs the approval of 2 people (removal): run `xpkg approve transaction policy-x`")
	plan := x.Status.Policy.Plan
	if !x.Status.Policy.OpensAt.Time.Equal(time.Date(2026, 12, 5, 21, 0, 0, 0, time.UTC)) {
		t.Errorf("opens at %v", x.Status.Policy.OpensAt)
	}
	// The second one of the same packages waits for the same window, and not for the first one.
	y := newTransaction("policy-y", wantPackage(v1.ConfigurationKind, "policy-b", other))
	s.CreateTemporary(t, y)
	untilMessage(t, s, y, "starts Sat 5 Dec 2026 22:00 CET")
	anonymous := newTransaction("policy-anonymous")
	anonymous.Spec.Remove = x.Spec.Remove
	s.CreateTemporary(t, anonymous)
	if status := untilEnded(t, s, anonymous); status.Phase != v1alpha1.Refused || status.Reason != "CreatorUnknown" {
		t.Errorf("%+v", status)
	}
	if err := s.Client.Delete(t.Context(), y); err != nil {
		t.Fatal(err)
	}

	jane, joe := approver(t, s, "jane", "policy-x"), approver(t, s, "joe", "policy-x")
	for digest, c := range map[string]client.Client{"sha256:" + strings.Repeat("0", 64): joe, plan: jane} {
		user, _ := apiserver.User(t.Context(), c)
		if _, err := operation.ApproveTransaction(t.Context(), c, x.DeepCopy(), digest, user); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := operation.ApproveTransaction(t.Context(), jane, x.DeepCopy(), plan, "ann"); !apierrors.IsForbidden(errors.Unwrap(err)) &&
		!strings.Contains(fmt.Sprint(err), fence.ApprovalsName) {
		t.Errorf("jane approves for ann: %v", err)
	}
	untilMessage(t, s, x, "needs the approval of 2 people (removal), and has that of jane; approvals of a former plan do not count")
	now.Set(instant("2026-12-05T21:30:00Z"))
	if _, err := operation.ApproveTransaction(t.Context(), joe, x.DeepCopy(), plan, "joe"); err != nil {
		t.Fatal(err)
	}
	status := untilEnded(t, s, x)
	if status.Phase != v1alpha1.Succeeded || strings.Join(status.Policy.ApprovedBy, " ") != "jane joe" {
		t.Errorf("%+v", status)
	}
	for name, want := range map[string]string{"policy-a": "", "policy-b": other} {
		if got := referenceOf(t, s, v1.ConfigurationKind, name); got != want {
			t.Errorf("%s is installed from %q, want %q", name, got, want)
		}
	}

	// The end of the policy lets a transaction start.
	now.Set(instant("2026-12-06T12:00:00Z"))
	z := newTransaction("policy-z", wantPackage(v1.ConfigurationKind, "policy-a", two))
	s.CreateTemporary(t, z)
	untilMessage(t, s, z, "starts Sat 12 Dec 2026 22:00 CET")
	if err := s.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if status := untilEnded(t, s, z); status.Phase != v1alpha1.Succeeded || status.Policy != nil {
		t.Errorf("%+v", status)
	}
}

// While a ChangePolicy exists, no other client than the manager changes packages. Labels and annotations stay free.
func TestNoClientGoesAroundTheChangePolicy(t *testing.T) {
	s := newEnv(t)
	r := newRegistry(t)
	one, _ := r.push(t, "acme/around:v1", configuration("around", "around.test", "one"))
	two, _ := r.push(t, "acme/around:v2", configuration("around", "around.test", "two"))
	s.start(t)
	a := env.NewPackage(v1.ConfigurationKind, "around", one)
	s.CreateTemporary(t, a)
	s.WaitReady(t, a)
	env.Grant(t, s.Client, env.User("gitops"), rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	c := env.NewClient(t, env.AsUser(s.Config, "gitops"))
	patch := func(text string) func() error {
		return func() error {
			return c.Patch(t.Context(), a.DeepCopyObject().(client.Object), client.RawPatch("application/merge-patch+json", []byte(text)), client.DryRunAll)
		}
	}
	writes := map[string]func() error{
		"a new package": func() error {
			return c.Create(t.Context(), env.NewPackage(v1.ConfigurationKind, "around-new", two), client.DryRunAll)
		},
		"another version": patch(`{"spec":{"package":"` + two + `"}}`),
		"a deletion":      func() error { return c.Delete(t.Context(), a.DeepCopyObject().(client.Object), client.DryRunAll) },
	}
	for what, write := range writes {
		if err := write(); err != nil {
			t.Errorf("%s without a policy: %v", what, err)
		}
	}
	p := newPolicy(t, s, v1alpha1.ChangePolicySpec{})
	denies := func() {
		t.Helper()
		for what, write := range writes {
			wait.Until(t, limit, what+" is denied", func() (string, bool) {
				err := write()
				return fmt.Sprint(err), apierrors.IsForbidden(err) && containsAll(err.Error(), fence.ChangesName, "xpkg plan sync --lock xpkg.lock --transaction")
			})
		}
	}
	denies()
	for _, text := range []string{
		`{"metadata":{"annotations":{"crossplane.io/paused":"true"}}}`, `{"metadata":{"labels":{"a":"b"}}}`,
		`{"spec":{"package":"` + one + `"}}`,
	} {
		if err := patch(text)(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	// The manager restores the fence.
	for _, o := range []client.Object{&admissionv1.ValidatingAdmissionPolicyBinding{}, &admissionv1.ValidatingAdmissionPolicy{}} {
		o.SetName(fence.ChangesName)
		if err := c.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	denies()
	env.Update(t, s.Env, p, func(p *v1alpha1.ChangePolicy) { p.Spec.TimeZone = "Europe/Berlim" })
	if is := untilEnforced(t, s, p, v1alpha1.ReasonInvalid); is.Message != "no transaction starts: the time zone Europe/Berlim does not exist" {
		t.Error(is.Message)
	}
	x := newTransaction("around", wantPackage(v1.ConfigurationKind, "around", two))
	s.CreateTemporary(t, x)
	untilMessage(t, s, x, "the ChangePolicy is not valid, so that no transaction starts: the time zone Europe/Berlim does not exist")
	denies()
	env.Update(t, s.Env, p, func(p *v1alpha1.ChangePolicy) { p.Spec.TimeZone = "" })
	if status := untilEnded(t, s, x); status.Phase != v1alpha1.Succeeded {
		t.Errorf("%+v", status)
	}
	if err := s.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for what, write := range writes {
		wait.Until(t, limit, what+" is permitted without the policy", func() (string, bool) {
			err := write()
			return fmt.Sprint(err), err == nil
		})
	}
}

// A policy that watches packages lets a transaction succeed when they have been healthy for that time, also after a
// restart of the manager, and returns them if one of them was not.
func TestChangePolicyWatchesPackages(t *testing.T) {
	s := newEnv(t)
	r := newRegistry(t)
	var refs []string
	for _, v := range []string{"v1", "v2", "v3"} {
		ref, _ := r.push(t, "acme/watched:"+v, configuration("watched", "watched.test", v))
		refs = append(refs, ref)
	}
	var ahead atomic.Int64
	s.options.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	stop := s.start(t)
	a := env.NewPackage(v1.ConfigurationKind, "watched", refs[0])
	s.CreateTemporary(t, a)
	s.WaitReady(t, a)
	newPolicy(t, s, v1alpha1.ChangePolicySpec{Watch: &metav1.Duration{Duration: time.Hour}})
	watched := func(name, ref string) *v1alpha1.Transaction {
		x := newTransaction(name, wantPackage(v1.ConfigurationKind, "watched", ref))
		x.Spec.OnFailure, x.Spec.Deadline = v1alpha1.Keep, &metav1.Duration{} // As of a command that does not wait.
		s.CreateTemporary(t, x)
		wait.Until(t, limit, "the transaction watches", func() (string, bool) {
			err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(x), x)
			return fmt.Sprintf("%v, %+v", err, x.Status), x.Status.Phase == v1alpha1.Watching && x.Status.HealthySince != nil &&
				strings.HasPrefix(x.Status.Message, "all packages are healthy; the ChangePolicy watches them until ")
		})
		return x
	}
	x := watched("watched-1", refs[1])
	stop()
	ahead.Store(int64(time.Hour))
	s.start(t)
	if status := untilEnded(t, s, x); status.Phase != v1alpha1.Succeeded {
		t.Errorf("%+v", status)
	}

	ahead.Store(0)
	y := watched("watched-2", refs[2])
	wait.Until(t, limit, "the transaction has returned the package", func() (string, bool) {
		// The manager corrects the condition at once.
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(a), a); err == nil && y.Status.Phase == v1alpha1.Watching {
			a.SetConditions(metav1.Now(), v1.Unhealthy("Broken: for a moment"))
			_ = s.Client.Status().Update(t.Context(), a) // Another attempt follows a conflict.
		}
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(y), y)
		return fmt.Sprintf("%v, %+v", err, y.Status), y.Status.Phase == v1alpha1.Returned && y.Status.Reason == "NotStable"
	})
	if got := referenceOf(t, s, v1.ConfigurationKind, "watched"); got != refs[1] {
		t.Errorf("got %s", got)
	}
}
