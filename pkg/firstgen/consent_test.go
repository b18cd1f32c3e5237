package firstgen_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// consents are the published packages that need consent after their conversion, each with what it asks for.
//
// They may do everything in a group that Crossplane defined in 2020 and that provider-kubernetes uses today.
var consents = map[string]string{
	"crossplane-contrib__provider-helm@2020-08-19-b33f7d54": "* * in kubernetes.crossplane.io",
	"crossplane-contrib__provider-helm@v0.1.2-5786c006":     "* * in kubernetes.crossplane.io",
	"crossplane-contrib__provider-helm@v0.2.0-1bfc2f32":     "* * in kubernetes.crossplane.io",
}

// The permissions that published packages request amount to control of the cluster only for a known reason.
func TestPublishedPackagesNeedConsentForAKnownReason(t *testing.T) {
	if testing.Short() {
		t.Skip("converts 107 packages: skipped with -short")
	}
	root := filepath.Join(corpus.Dir(t), "legacy-v1")
	folders, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	requesting, got := 0, map[string]string{}
	for _, d := range folders {
		if _, bad := refused[d.Name()]; bad {
			continue
		}
		pkg, err := read(t, os.DirFS(filepath.Join(root, d.Name())), firstgen.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := firstgen.Convert(pkg, firstgen.ConvertOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var meta struct {
			Spec struct {
				PermissionRequests []rbacv1.PolicyRule `json:"permissionRequests"`
			} `json:"spec"`
		}
		first, _, _ := strings.Cut(string(c.Stream()), "\n---\n")
		if err := yaml.Unmarshal([]byte(first), &meta); err != nil {
			t.Fatal(err)
		}
		in := rbac.Input{Kind: rbac.Provider, Requests: meta.Spec.PermissionRequests}
		for _, r := range pkg.Resources {
			in.Defined = append(in.Defined, schema.GroupResource{Group: r.CRD.Spec.Group, Resource: r.CRD.Spec.Names.Plural})
		}
		if len(in.Requests) > 0 {
			requesting++
		}
		var waits []string
		for _, rule := range rbac.Escalating(nil, nil, nil, in) {
			waits = append(waits, rbac.Describe(rule))
		}
		if len(waits) > 0 {
			got[d.Name()] = strings.Join(waits, "; ")
		}
	}
	t.Logf("%d packages request permissions", requesting)
	if requesting < 80 {
		t.Error("too few packages request permissions: the test shows nothing")
	}
	if diff := cmp.Diff(consents, got); diff != "" {
		t.Errorf("packages that need consent (-want +got):\n%s", diff)
	}
}
