package revision_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// An API server accepts every object that is generated from a package with long names and odd metadata. Otherwise the
// package is refused before the first write, by `xpkg lint` too.
func TestGeneratedObjectsAreValidOrThePackageIsRefused(t *testing.T) {
	installed, refused := 0, map[string]int{}
	for seed := range uint64(300) {
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		p, stream := g.pkg()
		pkg, err := xpkg.Read(stream, xpkg.ReadOptions{})
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, stream)
		}
		atInstall, author := failed(pkg, xpkg.PolicyInstall()), failed(pkg, xpkg.PolicyBuild())
		notInstallable := revision.Installable(p, pkg)
		switch {
		case (atInstall == nil) != (author == nil):
			t.Errorf("seed %d: at install %v, for the author %v", seed, atInstall, author)
		case atInstall != nil && notInstallable == nil && !hasOnlyBadObjects(atInstall):
			t.Errorf("seed %d: content that was checked before is installed: %v", seed, atInstall)
		case atInstall != nil:
			refused[xpkg.Findings(atInstall)[0].Code.Name]++
			continue
		case notInstallable != nil:
			refused[errcode.From(notInstallable).Code.Name]++
			continue
		}
		installed++
		for _, o := range generated(t, p, pkg) {
			if errs := problems(o); len(errs) > 0 {
				t.Errorf("seed %d: %T %s: %v", seed, o, o.GetName(), errs.ToAggregate())
			}
		}
	}
	t.Logf("%d packages installed, refused: %v", installed, refused)
	for _, code := range []string{
		"InvalidMetaLabels", "MetaAnnotationsTooLarge", "InvalidCommonMetadata", "InvalidPackageObject",
	} {
		if installed < 50 || refused[code] == 0 {
			t.Errorf("%d packages installed, none refused with %s", installed, code)
		}
	}
}

// hasOnlyBadObjects reports whether a refusal is about objects, which the API server refuses as they are.
func hasOnlyBadObjects(err error) bool {
	for _, f := range xpkg.Findings(err) {
		if f.Severity == xpkg.Error && f.Document == 1 {
			return false
		}
	}
	return true
}

func failed(pkg *xpkg.Package, policy xpkg.Policy) error {
	return xpkg.Failed(check.Package(pkg, check.Options{Policy: policy, CRDs: crdvalidation.ValidateCRD}))
}

// generator generates packages.
type generator struct{ *rand.Rand }

// label returns a DNS label of a length that is often the maximum.
func (g generator) label() string {
	return "a" + strings.Repeat("b", []int{0, 10, 61, 62}[g.IntN(4)])
}

// subdomain returns a domain name of at most a length, with two labels or more.
func (g generator) subdomain(most int) string {
	out := "g.org"
	for n := g.IntN(4); n > 0 && len(out)+64 <= most; n-- {
		out = strings.Repeat("c", 63) + "." + out
	}
	if fill := most - len(out); g.IntN(2) == 0 && fill > 1 && fill <= 64 {
		out = strings.Repeat("d", fill-1) + "." + out
	}
	return out
}

// one returns a value, and the odd one in a twentieth of all cases.
func (g generator) one(usual, odd string) string {
	if g.IntN(20) == 0 {
		return odd
	}
	return usual
}

func (g generator) metadata(name string) map[string]any {
	return map[string]any{
		"name": name,
		"labels": map[string]any{
			g.one("team", "bad key"): g.one(g.label(), "a b c"), "long": g.one("x", strings.Repeat("l", 64)),
		},
		"annotations": map[string]any{
			g.one("note", "bad key/x"): "any text\n", "readme": g.one("x", strings.Repeat("r", 300_000)),
			"almost": g.one("", strings.Repeat("r", 255<<10)),
		},
	}
}

// pkg returns a package and the content of its revision.
func (g generator) pkg() (v1.Package, []byte) {
	kind := []string{v1.ConfigurationKind, v1.ProviderKind}[g.IntN(2)]
	p := v1.NewPackage(kind)
	p.SetName(g.label())
	p.PackageSpec().Package = "registry.example.org/p:v1"
	p.PackageSpec().CommonLabels = map[string]string{g.one("a", "b c"): g.one("x", "y z")}
	p.PackageSpec().CommonAnnotations = map[string]string{"large": g.one("", strings.Repeat("l", 262_000))}
	all := []map[string]any{{
		"apiVersion": "meta.pkg.crossplane.io/v1", "kind": kind, "metadata": g.metadata(g.subdomain(253)),
	}}
	plural := g.label()
	group := g.subdomain(252 - len(plural))
	names := map[string]any{"kind": "Thing", "plural": plural}
	schema := map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}
	definition := map[string]any{"group": group, "names": names, "scope": "Cluster",
		"versions": []any{map[string]any{"name": "v1", "served": true, "schema": schema}}}
	version := definition["versions"].([]any)[0].(map[string]any)
	object := map[string]any{"metadata": g.metadata(plural + "." + group), "spec": definition}
	if kind == v1.ConfigurationKind {
		object["apiVersion"], object["kind"], version["referenceable"] = "apiextensions.crossplane.io/v2",
			"CompositeResourceDefinition", true
		return p, stream(append(all, object))
	}
	object["apiVersion"], object["kind"], version["storage"] = "apiextensions.k8s.io/v1", "CustomResourceDefinition", true
	all = append(all, object)
	for i := range 2 {
		name := fmt.Sprintf("w%d.%s", i, g.subdomain(250))
		all = append(all,
			map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
				"metadata": map[string]any{"name": name}, "webhooks": []any{}})
	}
	return p, stream(all)
}

func stream(objects []map[string]any) []byte {
	var out []byte
	for _, o := range objects {
		text, _ := yaml.Marshal(o)
		out = append(append(out, "---\n"...), text...)
	}
	return out
}

// generated returns the objects that the manager writes for a package, as far as they have metadata.
func generated(t *testing.T, p v1.Package, pkg *xpkg.Package) []metav1.Object {
	t.Helper()
	digest := "sha256:" + strings.Repeat("a", 64)
	rev := revision.Next(p, pkg.Meta, digest, nil).Current
	out := []metav1.Object{rev}
	objects, err := desired.Of(pkg, revision.Additions(rev, "crossplane-system"))
	if err != nil {
		t.Fatal(err)
	}
	composites, err := objects.Composites()
	if err != nil {
		t.Fatal(err)
	}
	set := rbac.Derive(rbac.Input{
		Kind: p.PackageKind(), Package: p.GetName(), Revision: rev.GetName(), Defined: objects.Defined(),
		Namespace:       "crossplane-system",
		ServiceAccounts: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "crossplane-system", Name: rev.GetName()}},
	})
	for _, c := range composites {
		set.ClusterRoles = append(set.ClusterRoles, rbac.DeriveComposite(c)...)
	}
	roles, err := desired.Roles(set)
	if err != nil {
		t.Fatal(err)
	}
	requester := revision.Requester(p, rev, nil)
	for _, list := range [][]plan.Desired{objects.Desired(), roles.Desired()} {
		for _, ch := range plan.Establish(list, nil, nil, requester).Changes {
			out = append(out, written(ch))
		}
	}
	if p.PackageKind() == v1.ProviderKind {
		workload, err := manifests.Build(manifests.Input{
			Owner: requester, Namespace: "crossplane-system", Image: "registry.example.org/p@" + digest,
			TLSServerSecret: v1.TLSServerSecretName(p.GetName()), TLSClientSecret: v1.TLSClientSecretName(p.GetName())})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, workload.ServiceAccount, workload.Deployment, workload.Service)
	}
	return out
}

// written returns the metadata of an object after a change.
func written(ch plan.Change) metav1.Object {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: ch.Ref.APIVersion, Kind: ch.Ref.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Name: ch.Ref.Name, Namespace: ch.Ref.Namespace, Labels: ch.Labels, Annotations: ch.Annotations,
		},
	}
}

// problems returns the problems of the metadata of an object for an API server.
func problems(o metav1.Object) field.ErrorList {
	text, _ := json.Marshal(o)
	var typed metav1.PartialObjectMetadata
	_ = json.Unmarshal(text, &typed)
	typed.OwnerReferences = nil // without UIDs
	name := apivalidation.NameIsDNSSubdomain
	switch {
	case strings.HasPrefix(typed.APIVersion, "rbac."):
		name = func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	case typed.Kind == "Service":
		name = apivalidation.NameIsDNSLabel
	}
	return apivalidation.ValidateObjectMeta(&typed.ObjectMeta, typed.Namespace != "", name, field.NewPath("metadata"))
}
