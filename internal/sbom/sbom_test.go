package sbom_test

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/sbom"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

func ref(name string) oci.Reference {
	return oci.MustParseReference(name).WithDigest(oci.DigestOf([]byte(name)))
}

func example() []sbom.Package {
	image := ref("docker.io/acme/controller:v1")
	return []sbom.Package{
		{
			Ref: ref("xpkg.test/a/fleet:v1.0.0"), Kind: "Configuration", Description: "Fleets & <boats>", License: "Apache-2.0",
			Source: "https://github.com/acme/fleet", Needs: []oci.Reference{ref("xpkg.test/a/boats:v2.0.0")},
		},
		{
			Ref: ref("xpkg.test/a/boats:v2.0.0"), Kind: "Provider", License: "My own", Source: "on request",
			Signers: []string{"sha256:ab"}, Needs: []oci.Reference{image, image},
		},
		{Ref: image}, {Ref: image},
	}
}

// Equal packages have equal bytes, in any order, and each reference has its package.
func TestBills(t *testing.T) {
	created := time.Unix(1700000000, 0)
	write := func(all []sbom.Package) (cyclonedx, spdx []byte) {
		cyclonedx, err := sbom.CycloneDX(all, "v1")
		if err != nil {
			t.Fatal(err)
		}
		spdx, err = sbom.SPDX(all, "v1", created)
		if err != nil {
			t.Fatal(err)
		}
		return cyclonedx, spdx
	}
	cyclonedx, spdx := write(example())
	shuffled := example()
	rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	if a, b := write(shuffled); string(a) != string(cyclonedx) || string(b) != string(spdx) {
		t.Error("the order of the packages matters")
	}
	var c struct {
		Components []struct {
			Reference string              `json:"bom-ref"`
			PURL      string              `json:"purl"`
			Licenses  []map[string]any    `json:"licenses"`
			Links     []map[string]string `json:"externalReferences"`
		} `json:"components"`
		Dependencies []struct {
			Reference string   `json:"ref"`
			DependsOn []string `json:"dependsOn"`
		} `json:"dependencies"`
	}
	if err := json.Unmarshal(cyclonedx, &c); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, x := range c.Components {
		known[x.Reference] = true
	}
	if len(known) != 3 || len(c.Components) != 3 || len(c.Dependencies) != 3 {
		t.Errorf("%s", cyclonedx)
	}
	for _, d := range c.Dependencies {
		if !known[d.Reference] || slices.ContainsFunc(d.DependsOn, func(r string) bool { return !known[r] }) ||
			len(slices.Compact(slices.Clone(d.DependsOn))) != len(d.DependsOn) {
			t.Errorf("unknown or double: %+v", d)
		}
	}
	const want = "pkg:oci/boats@sha256:"
	if at := c.Components[1]; !strings.HasPrefix(at.PURL, want) ||
		!strings.HasSuffix(at.PURL, "?repository_url=xpkg.test%2Fa%2Fboats&tag=v2.0.0") || len(at.Links) != 0 ||
		!reflect.DeepEqual(at.Licenses, []map[string]any{{"license": map[string]any{"name": "My own"}}}) {
		t.Errorf("%+v", at)
	}
	if fleet := c.Components[2]; len(fleet.Links) != 1 || fleet.Licenses[0]["expression"] != "Apache-2.0" {
		t.Errorf("%+v", fleet)
	}
	var s struct {
		Packages []struct {
			ID      string `json:"SPDXID"`
			License string `json:"licenseDeclared"`
		} `json:"packages"`
		Relationships []struct {
			Element string `json:"spdxElementId"`
			Related string `json:"relatedSpdxElement"`
		} `json:"relationships"`
	}
	if err := json.Unmarshal(spdx, &s); err != nil {
		t.Fatal(err)
	}
	known = map[string]bool{"SPDXRef-DOCUMENT": true}
	for _, p := range s.Packages {
		known[p.ID] = true
	}
	if len(known) != 4 || len(s.Relationships) != 5 || s.Packages[1].License != "NOASSERTION" {
		t.Errorf("%s", spdx)
	}
	for _, r := range s.Relationships {
		if !known[r.Element] || !known[r.Related] {
			t.Errorf("unknown: %+v", r)
		}
	}
}
