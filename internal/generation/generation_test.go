package generation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

func provider(name, version string) *v1.Provider {
	p := &v1.Provider{}
	p.Name, p.Spec.Package = name, "registry.example.org/acme/"+name+":"+version
	p.Status.CurrentIdentifier, p.Status.ResolvedDigest = p.Spec.Package, oci.DigestOf([]byte(name+version)).String()
	return p
}

func TestChangesAreDescribed(t *testing.T) {
	with := func(p *v1.Provider, change func(*v1.Provider)) *v1.Provider { change(p); return p }
	for want, tc := range map[string]struct{ from, to *v1.Provider }{
		"provider/boats v1 installed":   {nil, provider("boats", "v1")},
		"provider/boats v1 uninstalled": {provider("boats", "v1"), nil},
		"provider/boats v1 -> v2":       {provider("boats", "v1"), provider("boats", "v2")},
		"provider/boats v1 (packagePullPolicy)": {
			provider("boats", "v1"), with(provider("boats", "v1"), func(p *v1.Provider) {
				p.Spec.PackagePullPolicy = corev1.PullAlways
			}),
		},
		"provider/boats v1 -> v2 (revisionHistoryLimit, xpkg.dev/auto-installed)": {
			provider("boats", "v1"), with(provider("boats", "v2"), func(p *v1.Provider) {
				p.Spec.RevisionHistoryLimit = ptr.To[int64](3)
				p.Labels = map[string]string{graph.LabelAutoInstalled: "true", "team": "ships"}
			}),
		},
		// The tag has moved.
		"provider/boats " + oci.DigestOf([]byte("boatsv1")).Short() + " -> " + oci.DigestOf([]byte("other")).Short(): {
			provider("boats", "v1"), with(provider("boats", "v1"), func(p *v1.Provider) {
				p.Status.ResolvedDigest = oci.DigestOf([]byte("other")).String()
			}),
		},
		"provider/boats registry.example.org/acme/boats:v1 -> other.example.org/boats:v1": {
			provider("boats", "v1"), with(provider("boats", "v1"), func(p *v1.Provider) {
				p.Spec.Package = "other.example.org/boats:v1"
				p.Status.CurrentIdentifier = p.Spec.Package
			}),
		},
		// What users write about a package is no part of it.
		"": {provider("boats", "v1"), with(provider("boats", "v1"), func(p *v1.Provider) {
			p.Labels, p.Generation = map[string]string{"team": "ships"}, 7
		})},
	} {
		var sets [2][]Package
		for i, p := range []*v1.Provider{tc.from, tc.to} {
			if p != nil {
				sets[i] = Of([]v1.Package{p})
			}
		}
		var got []string
		for _, c := range Changes(sets[0], sets[1]) {
			got = append(got, c.String())
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A set that is read again equals the one that was stored, and the changes from one set to another lead there.
func TestChangesLeadFromOneSetToTheOther(t *testing.T) {
	sets := rapid.Custom(func(t *rapid.T) []Package {
		var out []v1.Package
		names := rapid.SliceOfNDistinct(rapid.SampledFrom(strings.Split("abcdef", "")), 0, 6, rapid.ID).Draw(t, "names")
		for _, name := range names {
			p := provider(name, rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, "version"))
			if rapid.Bool().Draw(t, "dependency") {
				p.Labels = map[string]string{graph.LabelAutoInstalled: "true"}
			}
			out = append(out, p)
		}
		return Of(out)
	})
	rapid.Check(t, func(t *rapid.T) {
		from, to := sets.Draw(t, "from"), sets.Draw(t, "to")
		raw, err := json.Marshal(from)
		var stored []Package
		if err = cmp.Or(err, json.Unmarshal(raw, &stored)); err != nil || len(Changes(from, stored)) > 0 {
			t.Fatalf("stored: %v, %v", Changes(from, stored), err)
		}
		for _, c := range Changes(from, to) {
			from = slices.DeleteFunc(from, func(p Package) bool { return p.PackageName == c.PackageName })
			if c.To != nil {
				from = append(from, *c.To)
			}
		}
		if rest := Changes(from, to); len(rest) > 0 || len(from) != len(to) {
			t.Errorf("rest: %v", rest)
		}
	})
}

// A generation of 200 packages with many settings fits into an object of the API.
func TestGenerationOf200PackagesIsSmall(t *testing.T) {
	var packages []v1.Package
	for i := range 200 {
		p := provider(fmt.Sprintf("provider-family-member-%d", i), "v1.23.4-rc.5")
		p.Labels = map[string]string{graph.LabelAutoInstalled: "true"}
		p.Annotations = map[string]string{graph.AnnotationRequiredBy: strings.Repeat("registry.example.org/acme/config, ", 3)}
		p.Spec.PackagePullSecrets = []corev1.LocalObjectReference{{Name: "registry-credentials"}}
		p.Spec.RuntimeConfigRef = &v1.RuntimeConfigReference{Name: "default"}
		p.Spec.RevisionHistoryLimit, p.Spec.RevisionActivationPolicy = ptr.To[int64](1), v1.AutomaticActivation
		packages = append(packages, p)
	}
	raw, err := json.Marshal(Content{Packages: Of(packages)})
	if err != nil || len(raw) > 256<<10 {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	t.Logf("%d KiB", len(raw)>>10)
}
