package planner_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// expected returns the writes that a plan announces, in the form of the audit.
func expected(p *planner.Plan) []string {
	out := []string{}
	for _, r := range p.Revisions {
		verb := map[planner.RevisionAction]string{planner.CreateRevision: "POST", planner.CollectRevision: "DELETE"}[r.Action]
		if verb == "" {
			verb = "PUT"
		}
		out = append(out, verb+" "+strings.ToLower(p.Package.Kind)+"revisions/"+r.Name)
	}
	for _, c := range p.Objects.Changes {
		verb := "PUT"
		switch {
		case c.Action == plan.Create:
			verb = "POST"
		case c.MetadataOnly:
			verb = "PATCH"
		}
		out = append(out, verb+" "+strings.ToLower(c.Ref.Kind)+"s/"+c.Ref.Name)
	}
	slices.Sort(out)
	return out
}

// actions returns the actions of a plan on objects, by name.
func actions(p *planner.Plan) map[string]plan.Action {
	out := map[string]plan.Action{}
	for _, c := range p.Objects.Changes {
		out[c.Ref.Name] = c.Action
	}
	return out
}

func install(t *testing.T, pl *planner.Planner, want v1.Package) *planner.Plan {
	t.Helper()
	return installWith(t, pl, planner.Options{}, want)
}

func installWith(t *testing.T, pl *planner.Planner, o planner.Options, want v1.Package) *planner.Plan {
	t.Helper()
	p, err := pl.Install(t.Context(), want, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// with is p with another spec.
func with(p *v1.Provider, how func(v1.Package)) v1.Package {
	out := p.DeepCopy()
	how(out)
	return out
}

// wantWrites waits until the manager has made the writes of a plan, and no others.
func wantWrites(t *testing.T, a *env.Audit, p *planner.Plan) {
	t.Helper()
	want := expected(p)
	wait.Until(t, limit, "all writes of the plan are made", func() (string, bool) {
		got := slices.Compact(madeWrites(a))
		return cmp.Diff(want, got), len(got) >= len(want)
	})
	// The garbage collector also acts when a revision is deleted, so the manager may
	// have to retry. Repeated writes count once.
	if diff := cmp.Diff(want, slices.Compact(madeWrites(a))); diff != "" {
		t.Errorf("writes (-planned +made):\n%s", diff)
	}
}

func wantActions(t *testing.T, p *planner.Plan, want map[string]plan.Action) {
	t.Helper()
	if diff := cmp.Diff(want, actions(p)); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// The manager makes exactly the writes of the plan.
func TestPlanEqualsTheWritesOfTheManager(t *testing.T) {
	e := env.New(t)
	s := newFakeContent()
	const repository = "registry.example.com/preview/life"
	s.put(repository+":v1", provider(
		"life", "", crd("life.preview.test", "Kept", "one"), crd("life.preview.test", "Changed", "one"),
		crd("life.preview.test", "Dropped", "one"),
	))
	s.put(repository+":v2", provider(
		"life", "", crd("life.preview.test", "Kept", "one"), crd("life.preview.test", "Changed", "two"),
		crd("life.preview.test", "Added", "two"),
	))
	s.put(repository+":v3", provider(
		"life", "", crd("life.preview.test", "Kept", "one"), crd("life.preview.test", "Changed", "three"),
		crd("life.preview.test", "Added", "two"),
	))
	seen := &env.Audit{}
	defer runManager(t, seen.Wrap(e.Config), s).Stop()
	c, pl := e.Client, newPlanner(t, e.Config, s)

	p := env.NewProvider("life", repository+":v1")
	first := install(t, pl, p)
	wantActions(t, first, map[string]plan.Action{
		"kepts.life.preview.test": plan.Create, "changeds.life.preview.test": plan.Create,
		"droppeds.life.preview.test": plan.Create,
	})
	seen.Reset("")
	e.CreateTemporary(t, p)
	settled(t, c, p)
	wantWrites(t, seen, first)
	if got := p.Status.CurrentRevision; got != first.Revisions[0].Name {
		t.Errorf("the revision is %s and was planned to be %s", got, first.Revisions[0].Name)
	}

	again := install(t, pl, p)
	if again.HasChanges() || again.Objects.Unchanged != 3 {
		t.Errorf("a package that is installed: %+v", again)
	}

	for _, update := range []struct {
		name  string
		how   func(v1.Package)
		first map[string]plan.Action
	}{
		{"kept, changed, dropped and added", func(p v1.Package) {
			p.PackageSpec().Package = repository +
				":v2"
		}, map[string]plan.Action{
			"changeds.life.preview.test": plan.Update, "addeds.life.preview.test": plan.Create,
			"droppeds.life.preview.test": plan.Release,
		}},
		{"with a revision that is collected", func(p v1.Package) {
			p.PackageSpec().Package = repository +
				":v3"
		}, map[string]plan.Action{
			"changeds.life.preview.test": plan.Update,
		}},
		{"back", func(p v1.Package) { p.PackageSpec().Package = repository + ":v2" }, map[string]plan.Action{
			"changeds.life.preview.test": plan.Update,
		}},
		{"labels on everything", func(p v1.Package) {
			p.PackageSpec().CommonLabels = map[string]string{
				"team": "a",
			}
		}, map[string]plan.Action{
			"kepts.life.preview.test": plan.Update, "changeds.life.preview.test": plan.Update,
			"addeds.life.preview.test": plan.Update,
		}},
		{"the pull policy, which only revisions copy", func(p v1.Package) {
			p.PackageSpec().PackagePullPolicy = corev1.PullAlways
		}, map[string]plan.Action{}},
		{"the history limit, which makes no write", func(p v1.Package) {
			p.PackageSpec().RevisionHistoryLimit = new(int64(3))
		}, map[string]plan.Action{}},
		{"manual activation", func(p v1.Package) {
			p.PackageSpec().RevisionActivationPolicy = v1.ManualActivation
			p.PackageSpec().Package = repository + ":v1"
		}, map[string]plan.Action{}},
	} {
		t.Run(update.name, func(t *testing.T) {
			planned := install(t, pl, with(p, update.how))
			if !planned.HasChanges() {
				t.Error("nothing is pending")
			}
			wantActions(t, planned, update.first)
			_, changed := update.first["changeds.life.preview.test"]
			_, labeled := update.first["kepts.life.preview.test"]
			if n := planned.CountKindChanges(); (len(n) > 0) != (changed && !labeled) {
				t.Errorf("the changes of kinds are %v", planned.KindChanges)
			}
			seen.Reset("")
			env.Update(t, e, v1.Package(p), update.how)
			settled(t, c, p)
			wantWrites(t, seen, planned)
		})
	}
}

// If an object of a package belongs to another package, the plan names that
// package, and nothing is written.
func TestRefusedPlan(t *testing.T) {
	e := env.New(t)
	s := newFakeContent()
	s.put("registry.example.com/preview/holder:v1", provider("holder", "", crd("refused.preview.test", "Shared", "a")))
	s.put(
		"registry.example.com/preview/comer:v1",
		provider("comer", "", crd("refused.preview.test", "Shared", "b"), crd("refused.preview.test", "Own", "b")),
	)
	seen := &env.Audit{}
	defer runManager(t, seen.Wrap(e.Config), s).Stop()
	c, pl := e.Client, newPlanner(t, e.Config, s)

	holder, comer := env.NewProvider("holder", "registry.example.com/preview/holder:v1"),
		env.NewProvider("comer", "registry.example.com/preview/comer:v1")
	e.CreateTemporary(t, holder)
	settled(t, c, holder)
	planned := install(t, pl, comer)
	if len(planned.Objects.Refusals) != 1 || planned.Objects.Refusals[0].Holder != "Provider/"+holder.Name {
		t.Fatalf("refusals: %+v", planned.Objects.Refusals)
	}
	seen.Reset("")
	e.CreateTemporary(t, comer)
	// The manager names the package where the plan can only know its revision.
	e.WaitCondition(
		t, comer, v1.TypeHealthy, corev1.ConditionFalse,
		"CustomResourceDefinition shareds.refused.preview.test belongs to Provider",
	)
	// Changes of a plan with a refusal are not carried out.
	planned.Objects.Changes = nil
	wantWrites(t, seen, planned)
}

// While a dependency is missing, only the revision is made.
func TestPlanThatWaits(t *testing.T) {
	e := env.New(t)
	s := newFakeContent()
	needs := "spec:\n  dependsOn:\n  - provider: registry.example.com/preview/needed\n    version: \">=v1.1.0\"\n"
	s.put("registry.example.com/preview/waits:v1", provider("waits", needs, crd("waits.preview.test", "Thing", "a")))
	seen := &env.Audit{}
	defer runManager(t, seen.Wrap(e.Config), s).Stop()
	pl := newPlanner(t, e.Config, s)

	p := env.NewProvider("waits", "registry.example.com/preview/waits:v1")
	planned := install(t, pl, p)
	isWarned := slices.ContainsFunc(planned.Warnings, func(w string) bool {
		return strings.HasPrefix(w, "Objects are changed only when these are installed: registry.example.com/preview/needed ")
	})
	if !planned.WaitsForDependencies() || !isWarned || len(planned.Objects.Changes) != 1 {
		t.Errorf("the plan does not wait: %+v", planned)
	}
	seen.Reset("")
	e.CreateTemporary(t, p)
	e.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "DependencyMissing")
	planned.Objects.Changes = nil
	wantWrites(t, seen, planned)
}

// An uninstall deletes the objects in its plan, including custom resources.
//
// hardening: I-12
func TestPlanOfUninstall(t *testing.T) {
	e := env.New(t)
	s := newFakeContent()
	const ref = "registry.example.com/preview/goes:v1"
	s.put(ref, provider(
		"goes", "", crd("goes.preview.test", "Thing", "a"), crd("goes.preview.test", "Empty", "a"),
		crd("goes.preview.test", "Held", "a"),
	))
	defer runManager(t, e.Config, s).Stop()
	c, pl := e.Client, newPlanner(t, e.Config, s)
	p := env.NewProvider("goes", ref)
	if _, err := pl.Uninstall(t.Context(), p, planner.Options{}); !errors.Is(err, planner.ErrNotInstalled) {
		t.Errorf("nothing to uninstall: %v", err)
	}
	e.CreateTemporary(t, p)
	settled(t, c, p)
	addOwner(t, c, "helds.goes.preview.test")
	for i := range 3 {
		e.CreateTemporary(t, thing(fmt.Sprintf("thing-%d", i)))
	}

	planned, err := pl.Uninstall(t.Context(), p, planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantActions(t, planned, map[string]plan.Action{
		"things.goes.preview.test": plan.Delete, "emptys.goes.preview.test": plan.Delete,
		"helds.goes.preview.test": plan.Leave,
	})
	want := []planner.CustomResources{{CRD: "things.goes.preview.test", Count: 3}}
	if diff := cmp.Diff(want, planned.CustomResources, cmpopts.IgnoreUnexported(planner.CustomResources{})); diff != "" {
		t.Errorf("custom resources (-want +got):\n%s", diff)
	}
	if err := planned.AnswerError(); !errors.Is(err, planner.ErrCustomResources) ||
		!strings.Contains(errcode.From(err).Do, "xpkg uninstall provider/goes --on-delete cascade=3") {
		t.Errorf("the deletion of custom resources needs no answer: %v", err)
	}
	env.Update(t, e, p, func(p *v1.Provider) {
		p.SetAnnotations(map[string]string{v1.AnnotationOnDelete: "cascade=3"})
	})
	if answered, err := pl.Uninstall(t.Context(), p, planner.Options{}); err != nil || answered.AnswerError() != nil {
		t.Errorf("the annotation is no answer: %v, %v", err, answered.AnswerError())
	}
	if err := c.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for name, action := range actions(planned) {
		if action == plan.Leave {
			continue
		}
		wait.Until(t, limit, name+" is gone", func() (string, bool) {
			err := c.Get(t.Context(), client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
			return fmt.Sprint(err), apierrors.IsNotFound(err)
		})
	}
	wait.Until(t, limit, "the object of another owner is released", func() (string, bool) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "helds.goes.preview.test"}, crd); err != nil {
			return err.Error(), false
		}
		return fmt.Sprint(crd.OwnerReferences), crd.DeletionTimestamp == nil
	})
}

// The plan of an uninstall has the objects that no revision lists, because the history limit deleted their revision,
// and the custom resources of CRDs that only an object of the package owns, such as those of the claims of an XRD.
func TestPlanOfUninstallHasAllThatThePackageOwns(t *testing.T) {
	e := env.New(t)
	p := env.NewProvider("owning", "registry.example.com/preview/owning:v1")
	e.CreateTemporary(t, p)
	create := func(kind, apiVersion, ownerKind, owner string, uid types.UID) types.UID {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(
			[]byte(strings.TrimPrefix(strings.TrimSpace(crd("owning.preview.test", kind, "a")), "---")), &o.Object,
		); err != nil {
			t.Fatal(err)
		}
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: ownerKind, Name: owner, UID: uid}})
		e.CreateTemporary(t, o)
		return o.GetUID()
	}
	released := create("Released", "pkg.crossplane.io/v1", "Provider", p.Name, p.UID)
	create("Claim", "apiextensions.k8s.io/v1", "CustomResourceDefinition", "releaseds.owning.preview.test", released)
	for _, kind := range []string{"Released", "Claim"} {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("owning.preview.test/v1")
		o.SetKind(kind)
		o.SetName("one")
		wait.Until(t, limit, kind+" is served", func() (string, bool) {
			err := e.Client.Create(t.Context(), o)
			return fmt.Sprint(err), err == nil
		})
	}

	planned, err := newPlanner(t, e.Config, newFakeContent()).Uninstall(t.Context(), p, planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantActions(t, planned, map[string]plan.Action{"releaseds.owning.preview.test": plan.Delete})
	want := []planner.CustomResources{{CRD: "claims.owning.preview.test", Count: 1}, {
		CRD: "releaseds.owning.preview.test", Count: 1,
	}}
	if diff := cmp.Diff(want, planned.CustomResources, cmpopts.IgnoreUnexported(planner.CustomResources{})); diff != "" {
		t.Errorf("custom resources (-want +got):\n%s", diff)
	}
}

// addOwner adds an unrelated owner to a CRD.
func addOwner(t *testing.T, c client.Client, name string) {
	t.Helper()
	owner := &unstructured.Unstructured{}
	owner.SetAPIVersion("v1")
	owner.SetKind("Namespace")
	if err := c.Get(t.Context(), client.ObjectKey{Name: "default"}, owner); err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, crd); err != nil {
		t.Fatal(err)
	}
	patch := fmt.Appendf(
		nil,
		`[{"op":"add","path":"/metadata/ownerReferences/-","value":{"apiVersion":"v1","kind":"Namespace","name":"default","uid":%q}}]`,
		owner.GetUID(),
	)
	if err := c.Patch(t.Context(), crd, client.RawPatch("application/json-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
}

func thing(name string) client.Object {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	o.SetAPIVersion("goes.preview.test/v1")
	o.SetKind("Thing")
	o.SetName(name)
	return o
}
