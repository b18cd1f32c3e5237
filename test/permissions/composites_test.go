package permissions_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// xrd returns an XRD, with a claim unless its plural is empty.
func xrd(apiVersion, scope, plural, group, claim string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.crossplane.io/" + apiVersion, "kind": "CompositeResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group, "names": map[string]any{"kind": "XThing", "plural": plural},
			"versions": []any{map[string]any{"name": "v1", "served": true, "referenceable": true}},
		},
	}}
	if scope != "" {
		set(o, scope, "spec", "scope")
	}
	if claim != "" {
		set(o, map[string]any{"kind": "Thing", "plural": claim}, "spec", "claimNames")
	}
	return o
}

func set(o *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		panic(err) // The path is one of an XRD.
	}
}

// rolesOf returns the roles that an XRD has.
func rolesOf(o *unstructured.Unstructured) []rbacv1.ClusterRole {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(o.Object, path...)
		return value
	}
	return rbac.DeriveComposite(rbac.Composite{
		Name: o.GetName(), Group: text("spec", "group"), Plural: text("spec", "names", "plural"),
		Claim: text("spec", "claimNames", "plural"),
	})
}

// rolesMatch waits until the roles of an XRD exist as they should, and belong to it.
func (s *suite) rolesMatch(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	for _, want := range rolesOf(o) {
		wait.Until(t, env.Limit, want.Name+" is right", func() (string, bool) {
			var live rbacv1.ClusterRole
			if err := s.Client.Get(t.Context(), client.ObjectKey{Name: want.Name}, &live); err != nil {
				return err.Error(), false
			}
			return fmt.Sprintf("%+v", live), metav1.IsControlledBy(&live, o) &&
				equality.Semantic.DeepEqual(live.Labels, want.Labels) && equality.Semantic.DeepEqual(live.Rules, want.Rules)
		})
	}
}

// rolesGone waits until no role of an XRD exists.
func (s *suite) rolesGone(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	for _, role := range rolesOf(o) {
		s.WaitGone(t, &role)
	}
}

// everyXRD returns an XRD of each version and scope, with and without a claim.
func everyXRD(group string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, apiVersion := range []string{"v1", "v2"} {
		for _, scope := range []string{"", "LegacyCluster", "Namespaced", "Cluster"} {
			for _, claim := range []string{"", "claims"} {
				plural := strings.ToLower("x" + apiVersion + scope + claim)
				out = append(out, xrd(apiVersion, scope, plural, group, claim+strings.Repeat(plural, min(1, len(claim)))))
			}
		}
	}
	return out
}

// Every XRD has its roles, with and without a package, if it was created before the manager started, while it runs, or
// while it was stopped. They follow the XRD, and no role that is right is written.
func TestRolesFollowEveryXRD(t *testing.T) {
	s := newSuite(t)
	s.InstallPackageAPI(t)
	before, after := everyXRD("before.example.org"), everyXRD("after.example.org")
	create := func(all ...*unstructured.Unstructured) {
		t.Helper()
		for _, o := range all {
			s.Create(t, o)
			t.Cleanup(func() { s.CleanUp(t, o.DeepCopy()) })
		}
	}
	match := func(all ...*unstructured.Unstructured) {
		t.Helper()
		for _, o := range all {
			s.rolesMatch(t, o)
		}
	}
	audit := &env.Audit{}
	start := func() *env.Manager { return s.run(t, audit.Wrap(s.Config), controller.Permissions{}) }
	create(before...)
	m := start()
	create(after...)
	match(append(before, after...)...)

	changed, kept := after[1], after[2]
	role := &rolesOf(changed)[1]
	s.Delete(t, role.DeepCopy())
	match(changed)
	env.Update(t, s.Env, role.DeepCopy(), func(r *rbacv1.ClusterRole) { r.Rules[0].Verbs = []string{"get"} })
	match(changed)
	env.Update(t, s.Env, role.DeepCopy(), func(r *rbacv1.ClusterRole) { r.Labels, r.OwnerReferences = nil, nil })
	match(changed)
	env.Update(t, s.Env, changed, func(o *unstructured.Unstructured) {
		set(o, "renamed", "spec", "claimNames", "plural")
		set(o, "Namespaced", "spec", "scope")
	})
	match(changed)

	// The status is written by core, often.
	audit.Reset("")
	set(kept, "True", "status", "established")
	if err := s.Client.Status().Update(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	later := xrd("v2", "Namespaced", "xlaters", "after.example.org", "")
	create(later)
	match(later)
	if calls := audit.Calls(kept.GetName()); len(calls) > 0 {
		t.Errorf("a change of the status causes %v", calls)
	}

	m.Stop()
	s.Delete(t, role.DeepCopy())
	meanwhile := xrd("v1", "", "xmeanwhiles", "after.example.org", "meanwhiles")
	create(meanwhile)
	audit.Reset("")
	start()
	match(append(before, append(after, later, meanwhile)...)...)
	for _, write := range audit.Writes("crossplane:composite:") {
		if !strings.Contains(write, meanwhile.GetName()) && write != http.MethodPost+" clusterroles/"+role.Name {
			t.Errorf("the restarted manager has made the write %s", write)
		}
	}

	s.Delete(t, changed.DeepCopy(), before[0].DeepCopy())
	s.rolesGone(t, changed)
	s.rolesGone(t, before[0])
	again := changed.DeepCopy()
	again.SetResourceVersion("")
	again.SetUID("")
	s.Create(t, again)
	match(again)
}

// The roles of an XRD of a package belong to the XRD, and go with the package.
func TestRolesOfComposites(t *testing.T) {
	s := newSuite(t)
	s.run(t, s.Config, controller.Permissions{})
	o := xrd("v1", "", "xthings", "composites.example.org", "things")
	raw, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: composites}\nspec: {}\n---\n" +
		string(raw)
	p := env.NewPackage(v1.ConfigurationKind, "composites", s.Push(t, "permissions/composites", "v1", text))
	s.Create(t, p)
	t.Cleanup(func() { s.CleanUp(t, p) })
	s.WaitReady(t, p)
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	s.rolesMatch(t, o)
	s.Delete(t, p)
	s.rolesGone(t, o)
}

// The roles that a restricted manager may not write are reported as an event of the XRD with the command that helps,
// and written as soon as it may. Roles that Crossplane's RBAC manager has left, and that are right, are kept without an
// event.
func TestRestrictedManagerReportsXRDs(t *testing.T) {
	s := newSuite(t)
	s.InstallPackageAPI(t)
	left := xrd("v1", "", "xleft", "left.example.org", "left")
	s.CreateTemporary(t, left)
	for _, role := range rolesOf(left) {
		role.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(left, left.GroupVersionKind())}
		s.CreateTemporary(t, &role)
	}
	s.bootstrapped(t, bootstrap.Options{PackageGroups: []string{"granted.example.org"}})
	granted := xrd("v2", "Namespaced", "xgranted", "granted.example.org", "")
	lacking := xrd("v2", "Cluster", "xlacking", "lacking.example.org", "")
	reserved := xrd("v1", "", "xreserved", "pkg.crossplane.io", "")
	s.CreateTemporary(t, granted, lacking, reserved)
	s.rolesMatch(t, granted)
	message := s.event(t, lacking, rbac.ErrPermissionMissing.Name)
	for _, part := range []string{
		"XRD xlacking.lacking.example.org", "`xpkg bootstrap --apply --package-group lacking.example.org`", "`xpkg doctor`",
	} {
		if !strings.Contains(message, part) {
			t.Errorf("the event lacks %q: %s", part, message)
		}
	}
	s.event(t, reserved, rbac.ErrReservedDefinition.Name)
	for _, o := range []*unstructured.Unstructured{lacking, reserved} {
		for _, role := range rolesOf(o) {
			s.absent(t, &rbacv1.ClusterRole{}, role.Name)
		}
	}

	// The XRD with right roles has been reconciled when a change of its roles has been noticed, which the manager may not
	// restore.
	role := &rolesOf(left)[3]
	if events := s.eventsOf(t, left); len(events) > 0 {
		t.Errorf("the XRD with right roles has the events %+v", events)
	}
	s.Delete(t, role.DeepCopy())
	s.event(t, left, rbac.ErrPermissionMissing.Name)

	text, err := rbac.Lack{Everywhere: rbac.Set{ClusterRoles: rolesOf(lacking)}.Everywhere()}.YAML(
		rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: bootstrap.Name})
	if err != nil {
		t.Fatal(err)
	}
	s.apply(t, string(text))
	s.rolesMatch(t, lacking)
}

// event waits until an XRD has an event with a reason, and returns its note.
func (s *suite) event(t *testing.T, o client.Object, reason string) (note string) {
	t.Helper()
	wait.Until(t, env.Limit, o.GetName()+" has an event "+reason, func() (string, bool) {
		all := s.eventsOf(t, o)
		for _, e := range all {
			if e.Reason == reason {
				note = e.Note
			}
		}
		return fmt.Sprint(all), note != ""
	})
	return note
}

func (s *suite) eventsOf(t *testing.T, o client.Object) []eventsv1.Event {
	t.Helper()
	var all eventsv1.EventList
	if err := s.Client.List(t.Context(), &all, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		t.Fatal(err)
	}
	var out []eventsv1.Event
	for _, e := range all.Items {
		if e.Regarding.UID == o.GetUID() {
			out = append(out, e)
		}
	}
	return out
}
