package restore_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// populate installs a provider that was upgraded and dropped a CRD, one with manual activation
// whose newest revision is inactive, one with common labels, a Configuration that was upgraded, a
// Function, and custom resources.
func (f fixture) populate(t *testing.T, c *cluster) []v1.Package {
	t.Helper()
	first := f.push(t, c, "upgraded", "v1", meta("Provider", "upgraded")+f.definition("Kept", "one")+
		f.definition("Dropped", "one"))
	second := f.push(t, c, "upgraded", "v2", meta("Provider", "upgraded")+f.definition("Kept", "two")+
		f.definition("Added", "two"))
	upgraded := f.provider(first, nil)
	f.install(t, c, upgraded)
	f.resource(t, c, "Dropped", "any")
	upgrade(t, c, upgraded, second)
	f.resource(t, c, "Kept", "any")

	running := f.push(t, c, "manual", "v1", meta("Provider", "manual")+f.definition("Manual", "one"))
	waiting := f.push(t, c, "manual", "v2", meta("Provider", "manual")+f.definition("Manual", "two"))
	manual := f.provider(running, func(p *v1.Provider) { p.Spec.RevisionActivationPolicy = v1.ManualActivation })
	c.Create(t, manual)
	untilInstalled(t, c, manual, corev1.ConditionFalse)
	activate(t, c, manual.Status.CurrentRevision)
	untilInstalled(t, c, manual, corev1.ConditionTrue)
	env.Update(t, c.Env, manual, func(p *v1.Provider) { p.Spec.Package = waiting })
	untilInstalled(t, c, manual, corev1.ConditionFalse)

	labeled := f.provider(f.push(t, c, "labeled", "latest", meta("Provider", "labeled")+f.definition("Labeled", "one")),
		func(p *v1.Provider) {
			p.Spec.CommonLabels = map[string]string{"team": "a"}
		})
	f.install(t, c, labeled)

	configuration := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: f.name + "-configuration"}}
	configuration.Spec.Package = f.push(t, c, "configuration", "v1", meta("Configuration", "configuration")+
		f.composition("kept", "one")+f.composition("dropped", "one"))
	f.install(t, c, configuration)
	next := f.push(t, c, "configuration", "v2", meta("Configuration", "configuration")+f.composition("kept", "two"))
	upgrade(t, c, configuration, next)

	function := &v1.Function{ObjectMeta: metav1.ObjectMeta{Name: f.name + "-function"}}
	function.Spec.Package = f.push(t, c, "function", "v1", meta("Function", "function"))
	f.install(t, c, function)
	return []v1.Package{upgraded, manual, labeled, configuration, function}
}

// moveTags makes every tag refer to other content.
func (f fixture) moveTags(t *testing.T, c *cluster) {
	t.Helper()
	for name, kind := range map[string]string{
		"upgraded": "Provider", "manual": "Provider", "labeled": "Provider", "configuration": "Configuration",
		"function": "Function",
	} {
		stream := meta(kind, name)
		if kind == "Provider" {
			stream += f.definition("Unwanted", name)
		}
		for _, tag := range []string{"v1", "v2", "latest"} {
			f.push(t, c, name, tag, strings.Replace(stream, "{name: "+name, "{name: moved-"+name, 1))
		}
	}
}

func (f fixture) install(t *testing.T, c *cluster, p v1.Package) {
	t.Helper()
	c.Create(t, p)
	untilReady(t, c, p)
}

func upgrade[P v1.Package](t *testing.T, c *cluster, p P, ref string) {
	t.Helper()
	env.Update(t, c.Env, p, func(p P) { p.PackageSpec().Package = ref })
	untilReady(t, c, p)
}

func activate(t *testing.T, c *cluster, name string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"desiredState":"Active"}}`))
	if err := c.Client.Patch(
		t.Context(), &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: name}}, patch,
	); err != nil {
		t.Fatal(err)
	}
}

// untilReady waits until a package is ready with the content of its spec, and all its revisions
// are ready.
func untilReady(t *testing.T, c *cluster, p v1.Package) {
	t.Helper()
	c.WaitPackage(t, p, "is ready", func() bool { return env.IsReady(p) && revisionsReady(t, c, p) })
}

// untilInstalled waits for the condition Installed of a package with manual activation.
func untilInstalled(t *testing.T, c *cluster, p v1.Package, want corev1.ConditionStatus) {
	t.Helper()
	c.WaitPackage(t, p, fmt.Sprintf("has Installed=%s", want), func() bool {
		installed := p.GetCondition(v1.TypeInstalled)
		return installed.Status == want && installed.Reason != v1.ReasonUnpacking &&
			installed.ObservedGeneration == p.GetGeneration() &&
			p.PackageStatus().CurrentIdentifier == p.PackageSpec().Package && revisionsReady(t, c, p)
	})
}

// revisionsReady reports whether all revisions of a package are ready.
func revisionsReady(t *testing.T, c *cluster, p v1.Package) bool {
	t.Helper()
	list := p.NewRevisionList()
	if err := c.Client.List(t.Context(), list, client.MatchingLabels{v1.LabelPackage: p.GetName()}); err != nil {
		t.Fatal(err)
	}
	for _, rev := range list.Revisions() {
		ready := rev.GetCondition(v1.TypeReady)
		if ready.Status != corev1.ConditionTrue || ready.ObservedGeneration != rev.GetGeneration() {
			return false
		}
	}
	return true
}

// resource creates a custom resource.
func (f fixture) resource(t *testing.T, c *cluster, kind, name string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(f.group + "/v1")
	u.SetKind(kind)
	u.SetName(name)
	c.Create(t, u)
}
