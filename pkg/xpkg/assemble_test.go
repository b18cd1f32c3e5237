package xpkg

import (
	"errors"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// meta returns the metadata of a package of a kind.
func meta(kind Kind) string {
	return "apiVersion: meta.pkg.crossplane.io/v1\nkind: " + string(kind) + "\nmetadata: {name: p}\n"
}

func object(apiVersion, kind string) string {
	return "---\napiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: o}\n"
}

// hardening: E2
func TestKindsOfObjects(t *testing.T) {
	const ok, not, unknown = "", "ObjectNotAllowed", "UnknownKind"
	for _, c := range []struct {
		apiVersion, kind                  string
		provider, configuration, function string
	}{
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition", ok, not, ok},
		{"apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", ok, not, ok},
		{"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", ok, not, not},
		{"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", ok, not, not},
		{"admissionregistration.k8s.io/v1", "AdmissionWebhookConfiguration", ok, not, not},
		{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", not, not, not},
		{"apiextensions.crossplane.io/v1alpha1", "ManagedResourceDefinition", ok, not, not},
		{"apiextensions.crossplane.io/v1", "CompositeResourceDefinition", not, ok, not},
		{"apiextensions.crossplane.io/v2", "CompositeResourceDefinition", not, ok, not},
		{"apiextensions.crossplane.io/v1alpha1", "CompositeResourceDefinition", not, ok, not},
		{"apiextensions.crossplane.io/v1", "Composition", not, ok, not},
		{"apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy", not, ok, not},
		{"ops.crossplane.io/v1alpha1", "Operation", not, ok, not},
		{"ops.crossplane.io/v1alpha1", "CronOperation", not, ok, not},
		{"ops.crossplane.io/v1alpha1", "WatchOperation", not, ok, not},
		{"apiextensions.crossplane.io/v1alpha1", "Usage", not, not, not},
		{"v1", "Secret", unknown, unknown, unknown},
		{"pkg.crossplane.io/v1", "Provider", unknown, unknown, unknown},
	} {
		for kind, want := range map[Kind]string{Provider: c.provider, Configuration: c.configuration, Function: c.function} {
			_, err := Read([]byte(meta(kind)+object(c.apiVersion, c.kind)), ReadOptions{})
			got := ""
			if err != nil {
				got = errcode.From(err).Code.Name
			}
			if got != want {
				t.Errorf("%s of %s in a %s: got %q, want %q", c.kind, c.apiVersion, kind, got, want)
			}
		}
	}
}

func TestLenientLeavesObjectsOut(t *testing.T) {
	stream := meta(Configuration) + object("apiextensions.crossplane.io/v1", "Composition") +
		object("apiextensions.crossplane.io/v1alpha1", "Usage")
	pkg, err := Read([]byte(stream), ReadOptions{Policy: PolicyInstall().Lenient()})
	if err != nil {
		t.Fatal(err)
	}
	if len(pkg.Objects) != 1 || len(pkg.Findings) != 1 || pkg.Findings[0].Code.Name != "ObjectNotAllowed" {
		t.Errorf("objects %v, findings %v", pkg.Objects, pkg.Findings)
	}
	if _, err := Read([]byte(stream+object("v1", "Secret")), ReadOptions{
		Policy: PolicyInstall().Lenient(),
	}); !errors.Is(err, ErrUnknownKind) {
		t.Errorf("a Secret: %v", err)
	}
}

// hardening: D5
func TestLenientReadsDuplicateKeysWithAWarning(t *testing.T) {
	stream := meta(Configuration) +
		"---\napiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {name: a}\nspec:\n  mode: A\n  mode: B\n"
	if _, err := Read([]byte(stream), ReadOptions{}); !errors.Is(err, ErrDuplicateKey) {
		t.Errorf("strict: %v", err)
	}
	pkg, err := Read([]byte(stream), ReadOptions{Policy: PolicyInstall().Lenient()})
	if err != nil {
		t.Fatal(err)
	}
	if len(pkg.Findings) != 1 || pkg.Findings[0].Severity != Warning || pkg.Findings[0].Line != 10 ||
		pkg.Findings[0].Name != "a" {
		t.Errorf("findings %v", pkg.Findings)
	}
	if text, err := pkg.Objects[0].JSON(); err != nil || !strings.Contains(string(text), `"mode":"B"`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestAllErrorsAreReported(t *testing.T) {
	stream := meta(Provider) + object("v1", "Secret") + object("v1", "ConfigMap") + "---\na: b: c\n---\nx\n" +
		meta(Function)
	_, err := Read([]byte(stream), ReadOptions{File: "p.yaml"})
	var got []string
	for _, f := range Findings(err) {
		got = append(got, f.String())
	}
	want := `p.yaml:5: error UnknownKind: document 2, Secret, "o": a Provider must not contain an object of v1; it can contain CustomResourceDefinition, ValidatingWebhookConfiguration, MutatingWebhookConfiguration, ManagedResourceDefinition
p.yaml:9: error UnknownKind: document 3, ConfigMap, "o": a Provider must not contain an object of v1; it can contain CustomResourceDefinition, ValidatingWebhookConfiguration, MutatingWebhookConfiguration, ManagedResourceDefinition
p.yaml:13: error InvalidYAML: document 4: mapping values are not allowed in this context
p.yaml:16: error InvalidYAML: document 5: mapping values are not allowed in this context`
	// The last document is a word and the metadata of a Function, without a separator.
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	const text = `the package is refused: p.yaml:5: document 2, Secret, "o": a Provider must not contain an object of v1; it can contain CustomResourceDefinition, ValidatingWebhookConfiguration, MutatingWebhookConfiguration, ManagedResourceDefinition (and 3 more)`
	if err.Error() != text {
		t.Errorf("got %q", err)
	}
}

// hardening: E2
func TestAliasOfTheSpecification(t *testing.T) {
	in := meta(Provider) + object("admissionregistration.k8s.io/v1", "AdmissionWebhookConfiguration")
	pkg, err := Read([]byte(in), ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := pkg.Objects[0]
	text, err := o.JSON()
	if want := `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"o"}}`; string(
		text,
	) != want || err != nil {
		t.Errorf("got %s, %v", text, err)
	}
	if o.GVK.Kind != "ValidatingWebhookConfiguration" ||
		!strings.Contains(string(o.Raw), "AdmissionWebhookConfiguration") {
		t.Errorf("%v of %q", o.GVK, o.Raw)
	}
	if len(pkg.Findings) != 1 || pkg.Findings[0].Severity != Warning {
		t.Errorf("findings %v", pkg.Findings)
	}
}

// hardening: E1
func TestExpectedKind(t *testing.T) {
	_, err := Read([]byte(meta(Configuration)), ReadOptions{Expect: Provider})
	if !errors.Is(err, ErrWrongKind) || !strings.Contains(err.Error(), "the package is a Configuration, not a Provider") {
		t.Errorf("got %v", err)
	}
	if _, err := Read([]byte(meta(Configuration)), ReadOptions{Expect: Configuration}); err != nil {
		t.Error(err)
	}
}

func TestMetaCanBeAnywhere(t *testing.T) {
	crd := strings.TrimPrefix(object("apiextensions.k8s.io/v1", "CustomResourceDefinition"), "---\n")
	pkg, err := Read([]byte(crd+"---\n"+meta(Provider)), ReadOptions{})
	if err != nil || pkg.Meta.Kind != Provider || pkg.Meta.Raw.Line != 5 || len(pkg.Objects) != 1 {
		t.Errorf("got %+v, %v", pkg, err)
	}
}

// hardening: D2
func TestObjectLimit(t *testing.T) {
	stream := meta(Configuration) + object("apiextensions.crossplane.io/v1", "Composition") + "spec: {a: " +
		strings.Repeat("b", 100) + "}\n"
	_, err := Read([]byte(stream), ReadOptions{Limits: Limits{ObjectBytes: 100}})
	if !errors.Is(err, ErrObjectTooLarge) ||
		!strings.Contains(err.Error(), "more than 100 bytes of one object as JSON (--limit-object-bytes)") {
		t.Errorf("got %v", err)
	}
}

func TestDocumentsAreReadOnlyOnce(t *testing.T) {
	pkg, err := Read([]byte(meta(Provider)), ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := pkg.Meta.Raw.JSON()
	b, _ := pkg.Meta.Raw.JSON()
	if &a[0] != &b[0] {
		t.Error("the JSON was computed twice")
	}
	alone := Document{File: "f", Line: 3, Raw: []byte("b: 1\na: 2\n")}
	if text, err := alone.JSON(); string(text) != `{"a":2,"b":1}` || err != nil {
		t.Errorf("got %s, %v", text, err)
	}
	broken := Document{File: "f", Line: 3, Raw: []byte("b: 1\na: 2\na: 3\n")}
	if _, err := broken.JSON(); !errors.Is(err, ErrDuplicateKey) ||
		err.Error() != `cannot read YAML: f:5: document 1: key "a" occurs twice` {
		t.Errorf("got %v", err)
	}
}
