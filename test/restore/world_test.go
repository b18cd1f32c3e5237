package restore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// populate installs what clusters have: a provider that was upgraded and dropped a
// definition, one that a person activates and whose newest revision waits, one with
// choices of its own, a Configuration that was upgraded, a Function, and resources of
// people.
func (w world) populate(t *testing.T, s *stand) []v1.Package {
	t.Helper()
	first := w.push(t, s, "upgraded", "v1", meta("Provider", "upgraded")+w.definition("Kept", "one")+w.definition("Dropped", "one"))
	second := w.push(t, s, "upgraded", "v2", meta("Provider", "upgraded")+w.definition("Kept", "two")+w.definition("Added", "two"))
	upgraded := w.provider(first, nil)
	w.install(t, s, upgraded)
	w.resource(t, s, "Dropped", "of-people")
	upgrade(t, s, upgraded, second)
	w.resource(t, s, "Kept", "of-people")

	running := w.push(t, s, "manual", "v1", meta("Provider", "manual")+w.definition("Manual", "one"))
	waiting := w.push(t, s, "manual", "v2", meta("Provider", "manual")+w.definition("Manual", "two"))
	manual := w.provider(running, func(p *v1.Provider) { p.Spec.RevisionActivationPolicy = v1.ManualActivation })
	create(t, s, manual)
	untilInstalled(t, s, manual, corev1.ConditionFalse)
	activate(t, s, manual.Status.CurrentRevision)
	untilInstalled(t, s, manual, corev1.ConditionTrue)
	change(t, s, manual, func(p *v1.Provider) { p.Spec.Package = waiting })
	untilInstalled(t, s, manual, corev1.ConditionFalse)

	labeled := w.provider(w.push(t, s, "labeled", "latest", meta("Provider", "labeled")+w.definition("Labeled", "one")), func(p *v1.Provider) {
		p.Spec.CommonLabels = map[string]string{"team": "a"}
	})
	w.install(t, s, labeled)

	configuration := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: w.name + "-configuration"}}
	configuration.Spec.Package = w.push(t, s, "configuration", "v1", meta("Configuration", "configuration")+w.composition("kept", "one")+w.composition("dropped", "one"))
	w.install(t, s, configuration)
	next := w.push(t, s, "configuration", "v2", meta("Configuration", "configuration")+w.composition("kept", "two"))
	upgrade(t, s, configuration, next)

	function := &v1.Function{ObjectMeta: metav1.ObjectMeta{Name: w.name + "-function"}}
	function.Spec.Package = w.push(t, s, "function", "v1", meta("Function", "function"))
	w.install(t, s, function)
	return []v1.Package{upgraded, manual, labeled, configuration, function}
}

// moveTags makes every tag stand for something else.
func (w world) moveTags(t *testing.T, s *stand) {
	t.Helper()
	for name, kind := range map[string]string{"upgraded": "Provider", "manual": "Provider", "labeled": "Provider", "configuration": "Configuration", "function": "Function"} {
		stream := meta(kind, name)
		if kind == "Provider" {
			stream += w.definition("Unwanted", name)
		}
		for _, tag := range []string{"v1", "v2", "latest"} {
			w.push(t, s, name, tag, strings.Replace(stream, "{name: "+name, "{name: moved-"+name, 1))
		}
	}
}

func (w world) install(t *testing.T, s *stand, p v1.Package) {
	t.Helper()
	create(t, s, p)
	untilReady(t, s, p)
}

// create does not clean up: whoever loses a cluster does that.
func create(t *testing.T, s *stand, o client.Object) {
	t.Helper()
	if err := s.client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func upgrade[P v1.Package](t *testing.T, s *stand, p P, ref string) {
	t.Helper()
	change(t, s, p, func(p P) { p.PackageSpec().Package = ref })
	untilReady(t, s, p)
}

func change[P v1.Package](t *testing.T, s *stand, p P, how func(P)) {
	t.Helper()
	until(t, p.GetName()+" is changed", func() (string, bool) {
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		how(p)
		err := s.client.Update(t.Context(), p)
		return fmt.Sprint(err), err == nil
	})
}

func activate(t *testing.T, s *stand, name string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"desiredState":"Active"}}`))
	if err := s.client.Patch(t.Context(), &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: name}}, patch); err != nil {
		t.Fatal(err)
	}
}

// untilReady waits until a package is ready with what its spec asks for, and so are
// all its revisions.
func untilReady(t *testing.T, s *stand, p v1.Package) {
	t.Helper()
	until(t, p.GetName()+" is ready", func() (string, bool) { return ready(t, s, p) })
}

func ready(t *testing.T, s *stand, p v1.Package) (string, bool) {
	t.Helper()
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		return err.Error(), false
	}
	c := p.GetCondition(v1.TypeReady)
	if c.Status != corev1.ConditionTrue || c.ObservedGeneration != p.GetGeneration() || p.PackageStatus().CurrentIdentifier != p.PackageSpec().Package {
		return fmt.Sprintf("%+v", p.PackageStatus()), false
	}
	return allReady(t, s, p)
}

// allReady says whether all revisions of a package are done.
func allReady(t *testing.T, s *stand, p v1.Package) (string, bool) {
	t.Helper()
	for _, rev := range revisions(t, s, p) {
		c := rev.GetCondition(v1.TypeReady)
		if c.Status != corev1.ConditionTrue || c.ObservedGeneration != rev.GetGeneration() {
			return fmt.Sprintf("%s %+v", rev.GetName(), rev.RevisionStatus().Conditions), false
		}
	}
	return "", true
}

// untilInstalled waits for the condition Installed of a package with the policy
// Manual.
func untilInstalled(t *testing.T, s *stand, p v1.Package, want corev1.ConditionStatus) {
	t.Helper()
	until(t, fmt.Sprintf("%s has Installed=%s", p.GetName(), want), func() (string, bool) {
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		c := p.GetCondition(v1.TypeInstalled)
		if c.Status != want || c.Reason == v1.ReasonUnpacking || c.ObservedGeneration != p.GetGeneration() || p.PackageStatus().CurrentIdentifier != p.PackageSpec().Package {
			return fmt.Sprintf("%+v", p.PackageStatus()), false
		}
		return allReady(t, s, p)
	})
}

func revisions(t *testing.T, s *stand, p v1.Package) []v1.PackageRevision {
	t.Helper()
	list := p.NewRevisionList()
	if err := s.client.List(t.Context(), list, client.MatchingLabels{v1.LabelPackage: p.GetName()}); err != nil {
		t.Fatal(err)
	}
	all := list.Revisions()
	slices.SortFunc(all, func(a, b v1.PackageRevision) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all
}

// resource makes a custom resource, as people do.
func (w world) resource(t *testing.T, s *stand, kind, name string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(w.group + "/v1")
	u.SetKind(kind)
	u.SetName(name)
	create(t, s, u)
}
