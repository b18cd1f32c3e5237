package firstgeneration

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
)

// former returns an object of the former package manager.
func former(group, kind, namespace, name string, spec map[string]any) client.Object {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: kind})
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// labelled adds the labels with which the former package manager names a parent.
func labelled(o client.Object, kind string) client.Object {
	o.SetLabels(map[string]string{
		labelParentKind: kind, labelParentNamespace: o.GetNamespace(), labelParentName: o.GetName(),
	})
	return o
}

// The install objects and records of both API groups are read, and packages and kinds are replaced as a user states it.
func TestInstallObjectsOfBothGroupsAreReadAndReplaced(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(apiextensionsv1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	earlier, group := packagesv1alpha1.EarlierGroup, packagesv1alpha1.Group
	objects := []client.Object{
		former(earlier, "ClusterStackInstall", "system", "wide", map[string]any{
			"source": "r.example.org", "package": "acme/wide:v1",
		}),
		labelled(former(earlier, "Stack", "system", "wide", map[string]any{"title": "wide"}), "ClusterStackInstall"),
		former(earlier, "Stack", "team", "redis", map[string]any{"title": "of a user"}),
		former(group, "PackageInstall", "team", "redis", map[string]any{"package": "r.example.org/acme/redis:v1"}),
		former(earlier, "StackInstall", "team", "narrow", map[string]any{"package": "r.example.org/acme/narrow:v1"}),
		former(group, "ClusterPackageInstall", "system", "kind", map[string]any{"crd": "things.kind.example.org/v1"}),
		former(group, "PackageInstall", "team", "moved", map[string]any{"package": "r.example.org/acme/moved:v1"}),
		labelled(former(group, "Package", "team", "moved", map[string]any{"title": "moved"}), "PackageInstall"),
	}
	served := former(group, "ClusterPackageInstall", "system", "served", map[string]any{
		"crd": "things.served.example.org/v1",
	})
	served.(*unstructured.Unstructured).Object["status"] = map[string]any{"provider": "acme-served"}
	objects = append(objects, served)
	replacements := map[string]string{
		"acme/wide:v1": "new.example.org/acme/wide:v2", "things.kind.example.org/v1": "new.example.org/acme/kind:v2",
	}
	m := &Migration{
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), Replacements: replacements,
	}
	m.Manager.Namespace = "system"
	s, err := m.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		target, reference, provider string
		record, replaced            bool
	}
	got := map[string]row{}
	for _, in := range s.installs {
		got[in.name] = row{in.target(), in.reference.String(), in.provider, in.record != nil, in.isReplaced()}
	}
	for name, want := range map[string]row{
		"wide":   {"ClusterPackageInstall", "new.example.org/acme/wide:v2", "wide", true, true},
		"narrow": {"PackageInstall", "r.example.org/acme/narrow:v1", "acme-narrow", false, false},
		"kind":   {"ClusterPackageInstall", "new.example.org/acme/kind:v2", "kind", false, true},
		"moved":  {"PackageInstall", "r.example.org/acme/moved:v1", "acme-moved", true, false},
		"redis":  {"PackageInstall", "r.example.org/acme/redis:v1", "acme-redis", false, false},
	} {
		if got[name] != want {
			t.Errorf("%s is %+v, want %+v", name, got[name], want)
		}
	}
	if len(s.problems) > 0 || len(got) != 5 {
		t.Errorf("%d objects, the problems %v", len(got), s.problems)
	}
	if notes := strings.Join(m.notes(s), "\n"); !strings.Contains(
		notes, "1 Stack without an install object will not be moved, and nothing maintains the controllers: team/redis.",
	) {
		t.Errorf("the notes do not name the Stack of a user:\n%s", notes)
	}

	// The plan names an object by its reference. A replacement that an interrupted migration has already made is in the
	// spec.
	m.Replacements = maps.Clone(replacements)
	delete(m.Replacements, "acme/wide:v1")
	m.Replacements["r.example.org/acme/wide:v1"] = "new.example.org/acme/wide:v2"
	m.Replacements["old.example.org/acme/moved:v1"] = "r.example.org/acme/moved:v1"
	if s, err = m.read(t.Context()); err != nil || len(s.problems) > 0 {
		t.Fatalf("the problems are %v (%v)", s.problems, err)
	}
	if i := slices.IndexFunc(
		s.installs, func(in *install) bool { return in.name == "wide" },
	); s.installs[i].reference.String() != "new.example.org/acme/wide:v2" {
		t.Errorf("the reference that a plan names is not replaced: %s", s.installs[i].reference)
	}
	for _, from := range []string{"acme/wide", "wide", "old.example.org/acme/wide:v1", "acme/narrow:v1"} {
		m.Replacements = maps.Clone(replacements)
		m.Replacements[from] = "new.example.org/acme/other:v1"
		if s, err = m.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if findings := s.findings(); len(findings) != 1 || !strings.Contains(findings[0].Problem, from+",") {
			t.Errorf("the replacement of %s: the problems are %v", from, findings)
		}
	}

	m.Replacements = nil
	if s, err = m.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(s.problems) != 1 || !strings.Contains(s.problems[0].Problem, "names no package") ||
		!strings.Contains(s.problems[0].Remedy, "things.kind.example.org/v1=REFERENCE") {
		t.Errorf("the problems are %v", s.problems)
	}
}
