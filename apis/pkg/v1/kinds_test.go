package v1

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/google/go-cmp/cmp"
)

// TestPackages drives every kind through the interfaces and looks at the wire.
func TestPackages(t *testing.T) {
	runtimes := map[string]string{
		ProviderKind: `,"runtimeConfigRef":{"name":"x"}`, FunctionKind: `,"runtimeConfigRef":{"name":"x"}`,
	}
	for _, kind := range PackageKinds() {
		t.Run(kind, func(t *testing.T) {
			p := NewPackage(kind)
			p.SetName("n")
			p.PackageSpec().Package = "r.io/p:v1"
			p.PackageStatus().ResolvedDigest = "sha256:1"
			if s := p.RuntimeSpec(); (s != nil) != (runtimes[kind] != "") {
				t.Errorf("the runtime spec is %v", s)
			} else if s != nil {
				s.RuntimeConfigRef = &RuntimeConfigReference{Name: "x"}
			}
			want := `{"kind":"` + kind + `","apiVersion":"pkg.crossplane.io/v1","metadata":{"name":"n"},` +
				`"spec":{"package":"r.io/p:v1"` + runtimes[kind] + `},"status":{"resolvedDigest":"sha256:1"}}`
			if diff := cmp.Diff(want, wire(t, p)); diff != "" {
				t.Error(diff)
			}
			if p.PackageKind() != kind {
				t.Errorf("PackageKind is %s", p.PackageKind())
			}
		})
	}
}

// TestRevisions does the same with every kind of revision.
func TestRevisions(t *testing.T) {
	secret := "s"
	for _, kind := range PackageKinds() {
		t.Run(kind, func(t *testing.T) {
			r := NewPackage(kind).NewRevision()
			r.RevisionSpec().DesiredState = RevisionActive
			r.RevisionStatus().ResolvedImage = "i"
			spec, status := "", ""
			if r.RuntimeSpec() != nil {
				r.RuntimeSpec().TLSServerSecretName = &secret
				r.RuntimeStatus().TLSClientSecretName = &secret
				spec, status = `,"tlsServerSecretName":"s"`, `,"tlsClientSecretName":"s"`
			}
			want := `{"kind":"` + RevisionKind(kind) + `","apiVersion":"pkg.crossplane.io/v1","metadata":{},` +
				`"spec":{"desiredState":"Active","image":"","revision":0` + spec + `},"status":{"resolvedImage":"i"` + status + `}}`
			if diff := cmp.Diff(want, wire(t, r)); diff != "" {
				t.Error(diff)
			}
			if (r.RuntimeSpec() == nil) != (kind == ConfigurationKind) ||
				(r.RuntimeStatus() == nil) != (kind == ConfigurationKind) {
				t.Error("exactly configurations have no runtime")
			}
			if r.PackageKind() != kind {
				t.Errorf("PackageKind is %s", r.PackageKind())
			}
		})
	}
}

// TestLists shows that the items of a list are not copies.
func TestLists(t *testing.T) {
	packages := []PackageList{
		&ProviderList{Items: make([]Provider, 2)},
		&ConfigurationList{Items: make([]Configuration, 2)},
		&FunctionList{Items: make([]Function, 2)},
	}
	for _, l := range packages {
		l.Packages()[1].SetName("changed")
		if got := l.Packages(); len(got) != 2 || got[1].GetName() != "changed" {
			t.Errorf("%T: %v", l, got)
		}
	}
	revisions := []PackageRevisionList{
		&ProviderRevisionList{Items: make([]ProviderRevision, 2)},
		&ConfigurationRevisionList{Items: make([]ConfigurationRevision, 2)},
		&FunctionRevisionList{Items: make([]FunctionRevision, 2)},
	}
	for _, l := range revisions {
		l.Revisions()[1].SetName("changed")
		if got := l.Revisions(); len(got) != 2 || got[1].GetName() != "changed" {
			t.Errorf("%T: %v", l, got)
		}
	}
}

// TestScheme shows that the scheme knows every kind under the right name.
func TestScheme(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range PackageKinds() {
		p := NewPackage(kind)
		objects := map[string]runtime.Object{
			kind: p, kind + "List": NewPackageList(kind),
			RevisionKind(kind): p.NewRevision(), RevisionKind(kind) + "List": p.NewRevisionList(),
		}
		for want, o := range objects {
			gvks, _, err := s.ObjectKinds(o)
			if err != nil || len(gvks) != 1 || gvks[0] != GroupVersion.WithKind(want) {
				t.Errorf("%T is %v (%v), want %s", o, gvks, err, want)
			}
		}
	}
}

func TestUnknownKind(t *testing.T) {
	if NewPackage("Lock") != nil || NewPackageList("Lock") != nil {
		t.Error("Lock is no kind of package")
	}
}

// TestConditionsOfEveryKind shows that each kind has conditions of its own
// generation.
func TestConditionsOfEveryKind(t *testing.T) {
	for _, kind := range PackageKinds() {
		p := NewPackage(kind)
		for _, c := range []interface {
			Conditioned
			metav1.Object
		}{p, p.NewRevision()} {
			c.SetGeneration(5)
			c.SetConditions(at(1), Paused("paused"))
			if got := c.GetCondition(TypeSynced); got.ObservedGeneration != 5 || got.Reason != ReasonPaused {
				t.Errorf("%T: %+v", c, got)
			}
		}
	}
}

func wire(t *testing.T, o any) string {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
