package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// fieldManager is the field manager of Crossplane.
const fieldManager = client.FieldOwner("crossplane")

// enoughRounds is the number of rounds of a stand-in after which a war without a limit would have gone on.
const enoughRounds = 300

// war is a manager with counted writes, and a package that it manages.
type war struct {
	*suite
	*writes
	options controller.Options
}

func newWar(t *testing.T) *war {
	t.Helper()
	w := &war{suite: newSuite(t), writes: &writes{}}
	w.options = env.OpenContent(t, t.TempDir(), fetch.Options{}).Options()
	w.options.Config = w.writes.of(w.Config)
	w.options.Namespace, w.options.MakeNamespace = namespace, true
	return w
}

// wage waits until the package, or its event, reports the contention of an object, and until the stand-in has had the
// time to go on. It fails if the manager writes more than most since reset.
func (w *war) wage(t *testing.T, s *standIn, most int, reported func() (string, bool)) {
	t.Helper()
	wait.Until(t, env.Limit, "the war is reported", func() (string, bool) {
		seen, ok := reported()
		return fmt.Sprintf("%d rounds, writes %v; %s", s.rounds.Load(), w.byCall(), seen), ok
	})
	from := s.rounds.Load()
	wait.Until(
		t, env.Limit, "the stand-in goes on", func() (string, bool) { return "", s.rounds.Load() > from+enoughRounds },
	)
	t.Logf("%d writes of the manager", w.total())
	for _, call := range sortedKeys(w.byCall()) {
		t.Logf("%6d %s", w.byCall()[call], call)
	}
	if n := w.total(); n > most {
		t.Errorf("%d writes of the manager, want at most %d", n, most)
	}
}

// reports reports whether the Ready condition of a package names a contention with parts of a message.
func (w *war) reports(t *testing.T, p v1.Package, parts ...string) func() (string, bool) {
	return func() (string, bool) {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		ready := p.GetCondition(v1.TypeReady)
		ok := string(ready.Reason) == contention.ErrContended.Name
		for _, part := range parts {
			ok = ok && strings.Contains(ready.Message, part)
		}
		return fmt.Sprintf("%+v", ready), ok
	}
}

// An unfenced core in another namespace creates its own revision of each package, flips the active one, and writes the
// status of the package.
func TestWarOverRevisionsIsBounded(t *testing.T) {
	lane.Full(t, "test/core.TestWarOverDeploymentsIsBounded", "internal/controller/contention.TestWritesAreBounded")
	w := newWar(t)
	w.RunManager(t, w.options)
	p := w.install(t, "flipped")
	w.WaitReady(t, p)
	w.reset()
	s := run(t, func(ctx context.Context) error { return w.flipRevisions(ctx, p.Name) })
	w.wage(t, s, 250, w.reports(t, p, `the field manager "crossplane"`, "ProviderRevision"))
	s.stop()
	revisions := &v1.ProviderRevisionList{}
	if err := w.Client.List(t.Context(), revisions, client.MatchingLabels{v1.LabelPackage: p.Name}); err != nil ||
		len(revisions.Items) != 2 {
		t.Errorf("%d revisions, %v; want the one of the manager and the one of core", len(revisions.Items), err)
	}
}

// flipRevisions does what the package manager of core does in one reconciliation.
func (w *war) flipRevisions(ctx context.Context, name string) error {
	p := &v1.Provider{}
	if err := w.core.Get(ctx, client.ObjectKey{Name: name}, p); err != nil {
		return err
	}
	if p.DeletionTimestamp != nil {
		return nil
	}
	list := &v1.ProviderRevisionList{}
	if err := w.core.List(ctx, list, client.MatchingLabels{v1.LabelPackage: name}); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(fmt.Sprint(p.Spec.Package, "|", p.Generation)))
	own, highest := oci.FriendlyID(name, hex.EncodeToString(sum[:])), int64(0)
	var current *v1.ProviderRevision
	for i := range list.Items {
		rev := &list.Items[i]
		highest = max(highest, rev.Spec.Revision)
		if rev.Name == own {
			current = rev
			continue
		}
		if rev.Spec.DesiredState == v1.RevisionActive {
			rev.Spec.DesiredState = v1.RevisionInactive
			if err := w.core.Update(ctx, rev, fieldManager); err != nil {
				return err
			}
		}
	}
	if current == nil {
		owner := *metav1.NewControllerRef(p, v1.GroupVersion.WithKind(v1.ProviderKind))
		return w.core.Create(ctx, &v1.ProviderRevision{
			ObjectMeta: metav1.ObjectMeta{
				Name: own, Labels: map[string]string{v1.LabelPackage: name}, OwnerReferences: []metav1.OwnerReference{owner},
			},
			Spec: v1.ProviderRevisionSpec{PackageRevisionSpec: v1.PackageRevisionSpec{
				DesiredState: v1.RevisionActive, Image: p.Spec.Package, Revision: highest + 1,
			}},
		}, fieldManager)
	}
	if current.Spec.DesiredState != v1.RevisionActive || current.Spec.Revision < highest {
		current.Spec.DesiredState, current.Spec.Revision = v1.RevisionActive, highest+1
		if err := w.core.Update(ctx, current, fieldManager); err != nil {
			return err
		}
	}
	if p.Status.CurrentRevision != own {
		p.Status = v1.ProviderStatus{PackageStatus: v1.PackageStatus{CurrentRevision: own, CurrentIdentifier: p.Spec.Package}}
		p.SetConditions(metav1.Now(), v1.Active(), v1.UnknownHealth(""))
		return w.core.Status().Update(ctx, p, fieldManager)
	}
	return nil
}

// The RBAC manager of core creates the roles of every revision, also of inactive ones, whose roles the manager deletes.
func TestWarOverRolesOfInactiveRevisionsIsBounded(t *testing.T) {
	lane.Full(t, "test/core.TestWarOverDeploymentsIsBounded", "internal/controller/contention.TestWritesAreBounded")
	w := newWar(t)
	w.options.Permissions = &controller.Permissions{}
	w.RunManager(t, w.options)
	p := w.install(t, "roles")
	w.WaitReady(t, p)
	old := w.upgrade(t, p)
	w.reset()
	s := run(t, func(ctx context.Context) error { return w.ensureRoles(ctx, p.Name) })
	w.wage(t, s, 60, func() (string, bool) {
		rev := &v1.ProviderRevision{}
		err := w.Client.Get(t.Context(), client.ObjectKey{Name: old}, rev)
		ready := rev.GetCondition(v1.TypeReady)
		return fmt.Sprintf("%v %+v", err, ready), string(ready.Reason) == contention.ErrContended.Name &&
			strings.Contains(ready.Message, "ClusterRole crossplane:provider:"+old) &&
			strings.Contains(ready.Message, `the field manager "crossplane"`)
	})
}

// upgrade moves a Provider to a second version, and returns the name of the former revision.
func (w *war) upgrade(t *testing.T, p *v1.Provider) (former string) {
	t.Helper()
	former = p.Status.CurrentRevision
	second := w.Push(t, "core/"+p.Name, "v2.0.0", providerYAML(p.Name, "second"))
	env.Update(t, w.Env, p, func(p *v1.Provider) { p.Spec.Package = second })
	return former
}

// ensureRoles does what the RBAC manager of core does: it creates the system role of each revision.
func (w *war) ensureRoles(ctx context.Context, name string) error {
	list := &v1.ProviderRevisionList{}
	if err := w.core.List(ctx, list, client.MatchingLabels{v1.LabelPackage: name}); err != nil {
		return err
	}
	for i := range list.Items {
		rev := &list.Items[i]
		if rev.DeletionTimestamp != nil {
			continue
		}
		for _, suffix := range []string{":system", ":aggregate-to-edit", ":aggregate-to-view"} {
			role := &rbacv1.ClusterRole{
				ObjectMeta: metav1.ObjectMeta{
					Name: "crossplane:provider:" + rev.Name + suffix, Labels: map[string]string{"rbac.crossplane.io/system": rev.Name},
					OwnerReferences: []metav1.OwnerReference{
						*metav1.NewControllerRef(rev, v1.GroupVersion.WithKind(v1.ProviderRevisionKind)),
					},
				},
				Rules: []rbacv1.PolicyRule{{
					APIGroups: []string{name + ".example.org"}, Resources: []string{"things"}, Verbs: []string{"*"},
				}},
			}
			if err := w.Client.Create(ctx, role, fieldManager); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
	}
	return nil
}

// A second manager of Deployments applies another template for the runtime of the same revision.
func TestWarOverDeploymentsIsBounded(t *testing.T) {
	w := newWar(t)
	w.options.Runtimes = runtime.Everywhere(runtime.Deployment)
	w.RunManager(t, w.options)
	p := w.install(t, "deployed")
	w.WaitPackage(t, p, "has a Deployment", func() bool { return w.deploymentOf(t.Context(), p) != nil })
	w.reset()
	s := run(t, func(ctx context.Context) error {
		d := w.deploymentOf(ctx, p)
		if d == nil || d.Spec.Template.Spec.Containers[0].Args != nil {
			return nil
		}
		d.Spec.Template.Spec.Containers[0].Args = []string{"--of-core"}
		d.Annotations = nil
		return w.Client.Update(ctx, d, fieldManager)
	})
	w.wage(t, s, 60, w.reports(t, p, "Deployment "+namespace+"/", `the field manager "crossplane"`))
}

// deploymentOf returns the Deployment of the revision of a package, or nil.
func (w *war) deploymentOf(ctx context.Context, p v1.Package) *appsv1.Deployment {
	all := &appsv1.DeploymentList{}
	if err := w.Client.List(ctx, all, client.InNamespace(namespace)); err != nil {
		return nil
	}
	for i := range all.Items {
		if c := metav1.GetControllerOf(&all.Items[i]); c != nil && strings.HasPrefix(c.Name, p.GetName()+"-") {
			return &all.Items[i]
		}
	}
	return nil
}

// Core and the manager both report a pause. Neither removes the condition of the other.
func TestPauseCausesNoWar(t *testing.T) {
	lane.Full(t, "test/core.TestWarOverDeploymentsIsBounded", "internal/controller/contention.TestWritesAreBounded")
	w := newWar(t)
	w.RunManager(t, w.options)
	p := w.install(t, "paused")
	w.WaitReady(t, p)
	lock := &v1beta1.Lock{}
	wait.Until(t, env.Limit, "the Lock has the package and its condition", func() (string, bool) {
		err := w.Client.Get(t.Context(), client.ObjectKey{Name: v1beta1.LockName}, lock)
		isPaused := func(e v1beta1.LockPackage) bool { return e.Name == p.Status.CurrentRevision }
		return fmt.Sprint(err, lock.Packages),
			err == nil && slices.ContainsFunc(lock.Packages, isPaused) && len(lock.Status.Conditions) == 1
	})
	env.Update(t, w.Env, p, func(p *v1.Provider) { p.Annotations = map[string]string{v1.AnnotationPaused: "true"} })
	isPaused := func() bool { return p.GetCondition(v1.TypeSynced).Reason == v1.ReasonPaused }
	w.WaitPackage(t, p, "is paused", isPaused)
	w.reset()
	const message = "Reconciliation (including deletion) is paused via the pause annotation"
	s := run(t, func(ctx context.Context) error {
		p := &v1.Provider{}
		if err := w.core.Get(ctx, client.ObjectKey{Name: "paused"}, p); err != nil ||
			p.GetCondition(v1.TypeSynced).Message == message || !v1.IsPaused(p) {
			return err
		}
		p.SetConditions(metav1.Now(), v1.Paused(message))
		return w.core.Status().Update(ctx, p, fieldManager)
	})
	w.wage(t, s, 1, func() (string, bool) {
		err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p)
		return fmt.Sprint(err), p.GetCondition(v1.TypeSynced).Message == message
	})
	env.Update(t, w.Env, p, func(p *v1.Provider) { delete(p.Annotations, v1.AnnotationPaused) })
	w.WaitPackage(t, p, "is reconciled again", func() bool {
		return p.GetCondition(v1.TypeSynced).Status == corev1.ConditionTrue && env.IsReady(p)
	})
}

// rewriteStatus writes the status of a package as core does, without the fields that core does not know.
func (w *war) rewriteStatus(ctx context.Context, name string) error {
	p := &v1.Provider{}
	if err := w.core.Get(ctx, client.ObjectKey{Name: name}, p); err != nil || p.GetCondition(v1.TypeReady).Status == "" {
		return err
	}
	p.Status = v1.ProviderStatus{PackageStatus: v1.PackageStatus{CurrentRevision: p.Status.CurrentRevision}}
	p.SetConditions(metav1.Now(), v1.Unhealthy("core"))
	return w.core.Status().Update(ctx, p, fieldManager)
}

// The manager does not react to the status of a package, so a client that rewrites it causes no war.
func TestRewrittenStatusCausesNoWar(t *testing.T) {
	lane.Full(t, "test/core.TestWarOverDeploymentsIsBounded", "internal/controller/contention.TestWritesAreBounded")
	w := newWar(t)
	w.RunManager(t, w.options)
	p := w.install(t, "statuses")
	w.WaitReady(t, p)
	w.reset()
	s := run(t, func(ctx context.Context) error { return w.rewriteStatus(ctx, p.Name) })
	w.wage(t, s, 2, func() (string, bool) { return "", s.rounds.Load() > enoughRounds })
}

// A client that rewrites the status and the metadata of a package is reported by an event, since the status cannot
// report it.
func TestWarOverTheStatusIsBounded(t *testing.T) {
	lane.Full(t, "test/core.TestWarOverDeploymentsIsBounded", "internal/controller/contention.TestWritesAreBounded")
	w := newWar(t)
	w.RunManager(t, w.options)
	p := w.install(t, "touched")
	w.WaitReady(t, p)
	w.reset()
	touches := 0
	s := run(t, func(ctx context.Context) error {
		touches++
		touch := client.RawPatch(
			types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%d"}}}`, touches),
		)
		if err := w.core.Patch(
			ctx, &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: p.Name}}, touch, fieldManager,
		); err != nil {
			return err
		}
		return w.rewriteStatus(ctx, p.Name)
	})
	w.wage(t, s, 60, w.event(t, v1.ProviderKind, p.Name))
}

// event reports whether an event reports the contention of an object.
func (w *war) event(t *testing.T, kind, name string) func() (string, bool) {
	return func() (string, bool) {
		list := &corev1.EventList{}
		if err := w.Client.List(t.Context(), list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err.Error(), false
		}
		for _, e := range list.Items {
			if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name && e.Reason == contention.ErrContended.Name {
				return e.Message, strings.Contains(e.Message, `the field manager "crossplane"`)
			}
		}
		return "no event", false
	}
}

// rewriteCRD applies the first version of a CRD again and again, as core does with a stale managed resource definition.
func (w *war) rewriteCRD(t *testing.T, name string) *standIn {
	t.Helper()
	first := &apiextensionsv1.CustomResourceDefinition{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Name: name}, first); err != nil {
		t.Fatal(err)
	}
	return run(t, func(ctx context.Context) error {
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := w.Client.Get(ctx, client.ObjectKey{Name: name}, d); err != nil || d.DeletionTimestamp != nil ||
			describe(d) == describe(first) {
			return err
		}
		d.Spec = first.Spec
		return w.Client.Update(ctx, d, fieldManager)
	})
}

func describe(d *apiextensionsv1.CustomResourceDefinition) string {
	return d.Spec.Versions[0].Schema.OpenAPIV3Schema.Description
}

// untilVersion waits until the content of a CRD is of a version.
func (w *war) untilVersion(t *testing.T, crd, version string) {
	t.Helper()
	wait.Until(t, env.Limit, crd+" is of the version "+version, func() (string, bool) {
		d := &apiextensionsv1.CustomResourceDefinition{}
		err := w.Client.Get(t.Context(), client.ObjectKey{Name: crd}, d)
		return fmt.Sprint(err, describe(d)), err == nil && describe(d) == version
	})
}

// Core applies a stale managed resource definition over an upgrade. Each further version is written all the same, and a
// change of the spec of the package makes the manager write at once.
func TestWarOverAnUpgradeIsBounded(t *testing.T) {
	lane.Full(t, "test/core.TestWarOverDeploymentsIsBounded", "internal/controller/contention.TestWritesAreBounded")
	w := newWar(t)
	w.RunManager(t, w.options)
	p := w.install(t, "stale")
	w.WaitReady(t, p)
	s := w.rewriteCRD(t, "things.stale.example.org")
	w.reset()
	w.upgrade(t, p)
	w.wage(t, s, 60, w.reports(
		t, p, "CustomResourceDefinition things.stale.example.org", `the field manager "crossplane"`, "had written it 5 times",
	))
	s.stop()
	w.reset()
	env.Update(t, w.Env, p, func(p *v1.Provider) { p.Spec.RevisionHistoryLimit = new(int64(7)) })
	w.untilVersion(t, "things.stale.example.org", "second")
	w.WaitReady(t, p)
}

// The manager continues by itself after the other client has stopped.
func TestManagerContinuesAfterAWar(t *testing.T) {
	lane.Full(t, "test/core.TestWarOverDeploymentsIsBounded", "internal/controller/contention.TestWritesAreBounded")
	w := newWar(t)
	w.options.Contention = contention.Limits{Writes: 3, Window: 5 * time.Second}
	w.RunManager(t, w.options)
	p := w.install(t, "continued")
	w.WaitReady(t, p)
	s := w.rewriteCRD(t, "things.continued.example.org")
	w.upgrade(t, p)
	wait.Until(
		t, env.Limit, "the war is reported", w.reports(t, p, "CustomResourceDefinition things.continued.example.org"),
	)
	s.stop()
	w.untilVersion(t, "things.continued.example.org", "second")
	w.WaitReady(t, p)
}
