package imageconfig

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// anyConfigs draws configs with names of their own, most of which match.
func anyConfigs(t *rapid.T) []v1beta1.ImageConfig {
	prefix := rapid.SampledFrom([]string{
		"xpkg.io", "xpkg.io/", "xpkg.io/acme", "xpkg.io/acme/prov", "m.io", "m.io/acme", "b.io", "n.io",
	})
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-d]{1,3}`), 0, 6, rapid.ID).Draw(t, "names")
	var configs []v1beta1.ImageConfig
	for _, name := range names {
		c := config(name, strings.Join(rapid.SliceOfN(prefix, 1, 3).Draw(t, "prefixes"), " "))
		for _, part := range []func(*v1beta1.ImageConfigSpec){
			rewrite("b.io/" + name), secret("secret-" + name), authority("pem-" + name), plain, mirror("m.io n.io/" + name),
			runtime(name),
		} {
			if rapid.Bool().Draw(t, "part") {
				part(&c.Spec)
			}
		}
		configs = append(configs, c)
	}
	return configs
}

func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		configs := anyConfigs(t)
		want, err := Choose(image, []string{"mine"}, configs)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Choose(image, []string{"mine"}, rapid.Permutation(configs).Draw(t, "order"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestConfigWithoutPurposeChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		configs := anyConfigs(t)
		want, err := Choose(image, nil, configs)
		if err != nil {
			t.Fatal(err)
		}
		silent := config("a-silent-one", "xpkg.io "+image+" b.io m.io")
		if rapid.Bool().Draw(t, "registry") {
			silent.Spec.Registry = &v1beta1.RegistryConfig{}
			silent.Spec.Runtime = &v1beta1.ImageRuntime{}
		}
		got, err := Choose(image, nil, append(configs, silent))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// For any configuration there is at least one source, the last source is the image
// itself, and sources are unique.
func TestSources(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		route, err := Choose(image, nil, anyConfigs(t))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(route.Sources); n == 0 || route.Sources[n-1].Image != route.Image {
			t.Fatalf("the sources are %v", route.Sources)
		}
		seen := map[string]bool{}
		for _, s := range route.Sources {
			if seen[s.Image] {
				t.Fatalf("%s is there twice", s.Image)
			}
			seen[s.Image] = true
		}
	})
}
