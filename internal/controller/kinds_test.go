package controller_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// managed returns the CRD of a managed resource.
func managed(group, kind string) string {
	return strings.Replace(crd(group, kind, "one"), "names: {", "names: {categories: [managed], ", 1)
}

// mrd returns the ManagedResourceDefinition of a managed resource, as packages contain them.
func mrd(group, kind, state string) string {
	text := strings.NewReplacer(
		"apiextensions.k8s.io/v1", "apiextensions.crossplane.io/v1alpha1", "CustomResourceDefinition",
		"ManagedResourceDefinition",
	).Replace(crd(group, kind, "one"))
	return strings.Replace(
		text, "spec:\n", "spec:\n  state: "+state+"\n  connectionDetails: [{name: password, description: it}]\n", 1,
	)
}

// instance returns a custom resource.
func instance(group, kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": kind, "metadata": map[string]any{"name": "one"},
	}}
}

// safeProvider returns a Provider with the capability safe-start.
func safeProvider(name string, crds ...string) string {
	return meta("Provider", name, "spec: {capabilities: [SafeStart]}\n") + strings.Join(crds, "")
}

// choosing returns a Provider with a choice of kinds.
func choosing(name, ref, kinds string) *v1.Provider {
	p := env.NewProvider(name, ref)
	p.Annotations = map[string]string{activation.AnnotationKinds: kinds}
	return p
}

// activeKinds returns the CRDs of a group that exist, without the group.
func activeKinds(t *testing.T, s *testEnv, group string) string {
	t.Helper()
	all := &unstructured.UnstructuredList{}
	all.SetAPIVersion("apiextensions.k8s.io/v1")
	all.SetKind("CustomResourceDefinitionList")
	if err := s.Client.List(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, o := range all.Items {
		if name, ok := strings.CutSuffix(o.GetName(), "."+group); ok && o.GetDeletionTimestamp() == nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func untilActive(t *testing.T, s *testEnv, group, want string) {
	t.Helper()
	wait.Until(t, limit, "the kinds "+want+" of "+group+" are active", func() (string, bool) {
		got := activeKinds(t, s, group)
		return got, got == want
	})
}

// restartOf identifies the deactivation after which the runtime of a package was started.
func restartOf(t *testing.T, s *testEnv, p v1.Package) string {
	t.Helper()
	return deploymentOf(t, s, p).Spec.Template.Annotations["xpkg.dev/deactivated"]
}

// restartPods replaces the pods of a package by ones that fail, or run.
func restartPods(t *testing.T, s *testEnv, k *env.Kubelet, p v1.Package, digest oci.Digest, fails bool) {
	t.Helper()
	k.Fail(digest.String(), fails)
	err := s.Client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(controller.DefaultNamespace),
		client.MatchingLabels{v1.LabelRevision: activeOf(t, s, p)})
	if err != nil {
		t.Fatal(err)
	}
}

// policy returns a ManagedResourceActivationPolicy.
func policy(name string, patterns ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "ManagedResourceActivationPolicy",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"activate": patterns},
	}}
}

// usingComposition returns a Composition whose template uses kinds of a group.
func usingComposition(name, group string, kinds ...string) *unstructured.Unstructured {
	template := ""
	for _, k := range kinds {
		template += "---\napiVersion: " + group + "/v1\nkind: " + k + "\n"
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"compositeTypeRef": map[string]any{"apiVersion": "composed.test/v1", "kind": "XAny"}, "mode": "Pipeline",
			"pipeline": []any{map[string]any{
				"step": "render", "functionRef": map[string]any{"name": "function-go-templating"},
				"input": map[string]any{
					"apiVersion": "gotemplating.fn.crossplane.io/v1beta1", "kind": "GoTemplate",
					"inline": map[string]any{"template": template},
				},
			}},
		},
	}}
}

// Kinds that nothing needs do not exist, and the runtime does not run until one of them does. A Composition and a policy
// activate what they need, and nothing is deactivated when they go.
func TestOnlyNeededKindsAreActive(t *testing.T) {
	s, _, r := newDeploymentEnv(t)
	const group = "needed.test"
	ref, _ := r.push(t, "kinds/needed:v1", safeProvider("needed", managed(group, "Alpha"), managed(group, "Beta"),
		managed(group, "Gamma"), managed(group, "Delta"), crd(group, "Config", "one")))
	p := choosing("needed", ref, "used")
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	if got := activeKinds(t, s, group); got != "configs" {
		t.Errorf("the kinds %s are active before one is needed", got)
	}
	replicas := func() int32 { return *deploymentOf(t, s, p).Spec.Replicas }
	if n := replicas(); n != 0 {
		t.Errorf("%d replicas before a kind is active", n)
	}
	composition, alphas := usingComposition("needed", group, "Alpha"), policy("needed", "b*."+group, "[malformed")
	s.Create(t, composition)
	untilActive(t, s, group, "alphas configs")
	eventually(t, "the runtime runs", func() bool { return replicas() == 1 })
	s.Create(t, alphas)
	untilActive(t, s, group, "alphas betas configs")
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Annotations[activation.AnnotationKinds] = "used,deltas." + group })
	untilActive(t, s, group, "alphas betas configs deltas")
	s.Delete(t, composition, alphas)
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Annotations[activation.AnnotationKinds] = "policies" })
	waitReconciled(t, s.Env, p)
	untilSettled(t, s, p)
	if got := activeKinds(t, s, group); got != "alphas betas configs deltas" {
		t.Errorf("the kinds %s are active after nothing needs them", got)
	}
	if n := replicas(); n != 1 {
		t.Errorf("%d replicas after nothing needs the kinds", n)
	}
	// The next version keeps the active kinds, and activates no more.
	next, _ := r.push(t, "kinds/needed:v2", safeProvider("needed", managed(group, "Alpha"), managed(group, "Beta"),
		managed(group, "Gamma"), managed(group, "Delta"), managed(group, "Epsilon"), crd(group, "Config", "two")))
	upgradeTo(t, s, p, next)
	untilSettled(t, s, p)
	if got := activeKinds(t, s, group); got != "alphas betas configs deltas" {
		t.Errorf("the kinds %s are active after an update", got)
	}
	remove(t, s, p)
	untilActive(t, s, group, "")
}

// Only kinds without custom resources are deactivated, when a user asks for it, and the runtime starts again.
func TestKindsAreDeactivatedOnRequest(t *testing.T) {
	s, _, r := newDeploymentEnv(t)
	const group = "dropped.test"
	ref, _ := r.push(t, "kinds/dropped:v1", safeProvider("dropped", managed(group, "Used"), managed(group, "Unused"),
		managed(group, "Kept")))
	p := env.NewProvider("dropped", ref)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	untilActive(t, s, group, "kepts unuseds useds")
	object := instance(group, "Used")
	s.Create(t, object)
	env.Update(t, s.Env, p, func(p *v1.Provider) {
		p.Annotations = map[string]string{
			activation.AnnotationKinds: "policies", activation.AnnotationDeactivate: "u*." + group,
		}
	})
	untilActive(t, s, group, "kepts useds")
	eventually(t, "the runtime is started again", func() bool { return restartOf(t, s, p) != "" })
	untilSettled(t, s, p)
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Errorf("a custom resource is lost: %v", err)
	}
	for _, o := range s.Revisions(t, p)[0].RevisionStatus().ObjectRefs {
		if o.Name == "unuseds."+group {
			t.Error("the revision lists the CRD of an inactive kind")
		}
	}
	// A kind that was deactivated can be activated again.
	s.Create(t, policy("dropped", "unuseds."+group))
	untilActive(t, s, group, "kepts unuseds useds")
	s.Delete(t, policy("dropped"), object)
	remove(t, s, p)
}

// definitionsOf returns the states and conditions of the definitions of a group, as "name State Established".
func definitionsOf(t *testing.T, s *testEnv, group string) string {
	t.Helper()
	all := &unstructured.UnstructuredList{}
	all.SetAPIVersion("apiextensions.crossplane.io/v1alpha1")
	all.SetKind("ManagedResourceDefinitionList")
	if err := s.Client.List(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, o := range all.Items {
		name, ok := strings.CutSuffix(o.GetName(), "."+group)
		if !ok {
			continue
		}
		state, _, _ := unstructured.NestedString(o.Object, "spec", "state")
		out = append(out, name+" "+state+" "+conditionOf(&o, "Established"))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// conditionOf returns the status and the reason of a condition of an object.
func conditionOf(o *unstructured.Unstructured, kind string) string {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range all {
		if c := c.(map[string]any); c["type"] == kind {
			return fmt.Sprint(c["status"], " ", c["reason"])
		}
	}
	return ""
}

// The definitions and the policies show what is active, and a user can activate a kind by the state of its definition.
func TestDefinitionsShowWhatIsActive(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	const group = "shown.test"
	p := choosing("shown", pushed(t, r, "shown", safeProvider("shown", managed(group, "Alpha"), managed(group, "Beta"),
		managed(group, "Gamma"))), "policies")
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	untilDefined := func(want string) {
		t.Helper()
		got := ""
		eventually(t, "the definitions are "+want, func() bool {
			got = definitionsOf(t, s, group)
			return got == want
		})
	}
	const never, inactive = " Inactive ", " Inactive False InactiveManagedResource"
	const active = " Active True EstablishedManagedResource"
	untilDefined("alphas" + never + ", betas" + never + ", gammas" + never)
	x := policy("shown", "a*."+group, "betas."+group)
	s.CreateTemporary(t, x)
	untilDefined("alphas" + active + ", betas" + active + ", gammas" + never)
	untilPolicy := func(kind, want string) {
		t.Helper()
		eventually(t, kind+" of the policy is "+want, func() bool {
			if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(x), x); err != nil {
				t.Fatal(err)
			}
			return conditionOf(x, kind) == want
		})
	}
	untilPolicy("Established", "True EstablishedManagedResource")
	untilPolicy("Healthy", "True Running")
	wait.Until(t, limit, "the policy lists what it activates", func() (string, bool) {
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(x), x); err != nil {
			t.Fatal(err)
		}
		activated, _, _ := unstructured.NestedStringSlice(x.Object, "status", "activated")
		return fmt.Sprint(activated), slices.Equal(activated, []string{"alphas." + group, "betas." + group})
	})
	env.Update(t, s.Env, x, func(x *unstructured.Unstructured) {
		_ = unstructured.SetNestedStringSlice(x.Object, []string{"alpas." + group, "[a"}, "spec", "activate")
	})
	untilPolicy("Healthy", "False EncounteredErrors")
	if text := fmt.Sprint(x.Object["status"]); !strings.Contains(text, "did you mean alphas."+group) ||
		!strings.Contains(text, "[a\" is malformed") {
		t.Errorf("the status of the policy is %s", text)
	}
	// A user activates a kind, and a deleted definition comes back.
	d := &unstructured.Unstructured{}
	d.SetAPIVersion("apiextensions.crossplane.io/v1alpha1")
	d.SetKind("ManagedResourceDefinition")
	d.SetName("gammas." + group)
	if err := s.Client.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"state":"Active"}}`))); err != nil {
		t.Fatal(err)
	}
	untilActive(t, s, group, "alphas betas gammas")
	s.Delete(t, d)
	untilDefined("alphas" + active + ", betas" + active + ", gammas" + active)
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Annotations[activation.AnnotationDeactivate] = "gammas." + group })
	untilDefined("alphas" + active + ", betas" + active + ", gammas" + inactive)
	// Other parts of a definition are those of its kind, and there is no third state.
	change := func(spec string) error {
		return s.Client.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(`{"spec":`+spec+`}`)))
	}
	if err := change(`{"group":"evil.test","names":{"kind":"Evil"}}`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the change is reverted", func() bool {
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			t.Fatal(err)
		}
		kind, _, _ := unstructured.NestedString(d.Object, "spec", "names", "kind")
		got, _, _ := unstructured.NestedString(d.Object, "spec", "group")
		return kind == "Gamma" && got == group
	})
	if err := change(`{"state":"Bogus"}`); !apierrors.IsInvalid(err) {
		t.Errorf("another state is accepted: %v", err)
	}
	// Crossplane core, which replaces the CRD of definitions, creates its own.
	label := func(value string) {
		t.Helper()
		d := newCRD()
		d.Name = "managedresourcedefinitions.apiextensions.crossplane.io"
		patch := []byte(`{"metadata":{"labels":{"xpkg.dev/permissive":` + value + `}}}`)
		if err := s.Client.Patch(context.Background(), d, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			t.Fatal(err)
		}
	}
	shared.definitions.Lock()
	t.Cleanup(shared.definitions.Unlock)
	t.Cleanup(func() { label(`"true"`) })
	label("null")
	untilDefined("")
	if got := activeKinds(t, s, group); got != "alphas betas" {
		t.Errorf("the kinds %s are active without definitions", got)
	}
	label(`"true"`)
	untilDefined("alphas" + active + ", betas" + active + ", gammas" + never)
	remove(t, s, p)
	untilDefined("")
}

// Of a Provider without the capability, all kinds are active.
func TestWithoutTheCapabilityAllKindsAreActive(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	const group = "unsafe.test"
	p := choosing("unsafe", pushed(t, r, "unsafe", provider("unsafe", managed(group, "Alpha"), managed(group, "Beta"))), "used")
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	untilActive(t, s, group, "alphas betas")
}

// A ManagedResourceDefinition in a package is installed as the CRD that it defines when its kind is active, and one that
// states that it is active always.
func TestManagedResourceDefinitionsBecomeCRDs(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	const group = "mrd.test"
	ref := pushed(t, r, "mrd", safeProvider("mrd", mrd(group, "Alpha", "Inactive"), mrd(group, "Beta", "Active")))
	p := choosing("mrd", ref, "policies")
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	untilActive(t, s, group, "betas")
	s.CreateTemporary(t, policy("mrd", "*."+group))
	untilActive(t, s, group, "alphas betas")
}

// Once a policy is established, its kinds can be created, each time, also while other policies change.
func TestAKindOfAnEstablishedPolicyCanBeCreated(t *testing.T) {
	providers, rounds := 1, 5
	if lane.IsFull() {
		providers, rounds = 8, 125
	}
	for i := range providers {
		t.Run(fmt.Sprint(i), func(t *testing.T) { testEstablishedPolicies(t, fmt.Sprint("established-", i), rounds) })
	}
}

func testEstablishedPolicies(t *testing.T, name string, rounds int) {
	t.Helper()
	s := sharedEnv(t)
	r := newRegistry(t)
	group := name + ".test"
	ref := pushed(t, r, name, safeProvider(name, managed(group, "Alpha"), managed(group, "Beta")))
	p := choosing(name, ref, "policies")
	p.Annotations[activation.AnnotationDeactivate] = "*"
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	for i := range rounds {
		kind := []string{"Alpha", "Beta"}[i%2]
		x := policy(fmt.Sprint(name, "-", i), strings.ToLower(kind)+"s."+group)
		s.Create(t, x)
		wait.Until(t, limit, "the policy is established", func() (string, bool) {
			if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(x), x); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(i, x.Object["status"]), strings.HasPrefix(conditionOf(x, "Established"), "True ")
		})
		o := instance(group, kind)
		if err := s.Client.Create(t.Context(), o); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		s.Delete(t, o, x)
		// Nothing needs the kind any more.
		env.Update(t, s.Env, p, func(p *v1.Provider) { p.Annotations[v1.AnnotationRetry] = fmt.Sprint(i) })
		wait.Until(t, limit, "no kind is active", func() (string, bool) {
			err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p)
			got := activeKinds(t, s, group)
			return fmt.Sprint(i, got, err, p.Status.Conditions), got == ""
		})
	}
	remove(t, s, p)
}

// A runtime that exits because a kind is inactive, although its package has the capability, gets the kind.
func TestAKindThatTheRuntimeNeedsIsActivated(t *testing.T) {
	s, k, r := newDeploymentEnv(t)
	s.options.ActivationDeadline = time.Minute
	const group = "crashes.test"
	ref, digest := r.push(t, "kinds/crashes:v1", safeProvider("crashes", managed(group, "Alpha"), managed(group, "Beta"),
		managed(group, "Gamma")))
	k.FailWith(digest.String(), "I1130 started\nerror: failed to start metrics recorder: no matches for kind \"Beta\" in version \""+group+"/v1\"\n")
	p := choosing("crashes", ref, "alphas."+group)
	s.CreateTemporary(t, p)
	untilActive(t, s, group, "alphas betas")
	restartPods(t, s, k, p, digest, false)
	untilSettled(t, s, p)
	if got := activeKinds(t, s, group); got != "alphas betas" {
		t.Errorf("the kinds %s are active", got)
	}
	remove(t, s, p)
}

// A Composition that uses an inactive kind is reported with the command that activates it.
func TestAnInactiveKindThatIsUsedIsReported(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	const group = "missed.test"
	p := choosing("missed", pushed(t, r, "missed", safeProvider("missed", managed(group, "Alpha"), managed(group, "Beta"))), "policies")
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	s.CreateTemporary(t, usingComposition("missed", group, "Alpha"))
	untilReported(t, s, p.Name, "alphas."+group+" (composition/missed)", "`xpkg activate alphas."+group+"`")
	if got := activeKinds(t, s, group); got != "" {
		t.Errorf("the kinds %s are active", got)
	}
}

// untilReported waits for an event about an object that an inactive kind is used, with texts.
func untilReported(t *testing.T, s *testEnv, name string, texts ...string) {
	t.Helper()
	eventually(t, "an event about "+name+" reports the kind", func() bool {
		var all eventsv1.EventList
		if err := s.Client.List(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(all.Items, func(e eventsv1.Event) bool {
			return e.Reason == "KindInactive" && e.Regarding.Name == name &&
				!slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(e.Note, text) })
		})
	})
}

// failedComposition returns the event of Crossplane about a composite resource that needs a kind that is not served.
func failedComposition(name, group, kind string) *corev1.Event {
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name + ".1", Namespace: "default"}}
	e.InvolvedObject = corev1.ObjectReference{
		APIVersion: "composed.test/v1", Kind: "XAny", Namespace: "default", Name: name, UID: "1",
	}
	e.Type, e.Reason = corev1.EventTypeWarning, "ComposeResources"
	e.Message = fmt.Sprintf("cannot compose resources: cannot apply composed resource \"a\": no matches for kind %q in version %q",
		kind, group+"/v1")
	return e
}

// An event about a composite resource whose function composes an inactive kind names the command that activates it. With
// the choice on-demand, the manager activates the kind.
func TestKindsAreActivatedOnDemand(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	const group = "demand.test"
	p := choosing("demand", pushed(t, r, "demand", safeProvider("demand", managed(group, "Alpha"), managed(group, "Beta"))), "used")
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	s.CreateTemporary(t, failedComposition("failing", group, "Alpha"))
	untilReported(t, s, "failing", "kinds of provider/demand", "`xpkg activate alphas."+group+"`")
	untilReported(t, s, p.Name, "alphas."+group+" (xany/failing)")
	if got := activeKinds(t, s, group); got != "" {
		t.Errorf("the kinds %s are active without the choice", got)
	}
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Annotations[activation.AnnotationKinds] = activation.OnDemand })
	untilActive(t, s, group, "alphas")
	s.CreateTemporary(t, failedComposition("later", group, "Beta"))
	untilActive(t, s, group, "alphas betas")
}

// A choice that cannot be read is reported, and changes nothing.
func TestAMalformedChoiceIsReported(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	const group = "malformed.test"
	p := choosing("malformed", pushed(t, r, "malformed", safeProvider("malformed", managed(group, "Alpha"))), "used,[a")
	s.CreateTemporary(t, p)
	s.WaitCondition(t, p, v1.TypeHealthy, "False", activation.ErrPattern.Name)
	if got := activeKinds(t, s, group); got != "" {
		t.Errorf("the kinds %s are active", got)
	}
}

// The kinds of a dependency that a Configuration uses exist before its Compositions, and the others do not.
func TestADependencyHasTheUsedKinds(t *testing.T) {
	w := newDependencyEnv(t, graph.None)
	const group = "dependency.test"
	offered := managed(group, "Alpha") + managed(group, "Beta") + managed(group, "Gamma")
	push := func(tag, name, meta string) string {
		ref, _ := w.registry.push(t, "dep/"+name+":"+tag, meta)
		return ref
	}
	push("v1.0.0", "offering", safeProvider("offering", offered))
	using := func(kinds ...string) string {
		composition := usingComposition("using", group, kinds...)
		raw, err := composition.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return meta("Configuration", "using", "spec:\n  dependsOn: [{provider: "+w.registry.address+"/dep/offering, version: '>=v1.0.0'}]\n") +
			"---\n" + string(raw) + "\n"
	}
	p := newConfiguration("using", push("v1.0.0", "using", using("Alpha")))
	w.CreateTemporary(t, p)
	untilSettled(t, w.testEnv, p)
	untilActive(t, w.testEnv, group, "alphas")
	if got := w.Revisions(t, p)[0].GetAnnotations()[revision.AnnotationUses]; !strings.Contains(got, "Alpha."+group) {
		t.Errorf("the revision records the uses %q", got)
	}
	// The next version activates what it uses before its Composition is written.
	next := push("v1.1.0", "using", using("Alpha", "Beta"))
	env.Update(t, w.Env, p, func(p *v1.Configuration) { p.Spec.Package = next })
	composition := usingComposition("using", group)
	eventually(t, "the Composition is updated", func() bool {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(composition), composition); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(activation.UsesOf(composition.Object), func(k schema.GroupKind) bool { return k.Kind == "Beta" })
	})
	if err := w.Client.Get(t.Context(), client.ObjectKey{Name: "betas." + group}, newCRD()); err != nil {
		t.Errorf("the Composition exists before the kinds that it uses: %v", err)
	}
	untilActive(t, w.testEnv, group, "alphas betas")
	untilSettled(t, w.testEnv, p)
}

// A Configuration whose functions may compose kinds that its Compositions do not name has a dependency with all kinds.
func TestADependencyOfAnOpenConfigurationHasAllKinds(t *testing.T) {
	w := newDependencyEnv(t, graph.None)
	const group = "opendependency.test"
	w.registry.push(t, "dep/offering:v1.0.0", safeProvider("offering", managed(group, "Alpha"), managed(group, "Beta")))
	composition := usingComposition("open", group, "Alpha")
	steps, _, _ := unstructured.NestedSlice(composition.Object, "spec", "pipeline")
	steps = append(steps, map[string]any{"step": "own", "functionRef": map[string]any{"name": "acme-compose"}})
	if err := unstructured.SetNestedSlice(composition.Object, steps, "spec", "pipeline"); err != nil {
		t.Fatal(err)
	}
	raw, err := composition.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	ref, _ := w.registry.push(t, "dep/open:v1.0.0", meta("Configuration", "open", "spec:\n  dependsOn: [{provider: "+
		w.registry.address+"/dep/offering, version: '>=v1.0.0'}]\n")+"---\n"+string(raw)+"\n")
	p := newConfiguration("open", ref)
	w.CreateTemporary(t, p)
	untilSettled(t, w.testEnv, p)
	untilActive(t, w.testEnv, group, "alphas betas")
}
