package sbom

import (
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// The fields of CycloneDX 1.6 that a bill has (cyclonedx.org/docs/1.6/json).
type (
	cdxDocument struct {
		Format       string          `json:"bomFormat"`
		SpecVersion  string          `json:"specVersion"`
		Version      int             `json:"version"`
		Metadata     cdxMetadata     `json:"metadata"`
		Components   []cdxComponent  `json:"components"`
		Dependencies []cdxDependency `json:"dependencies"`
	}
	cdxMetadata struct {
		Tools cdxTools `json:"tools"`
	}
	cdxTools struct {
		Components []cdxComponent `json:"components"`
	}
	cdxComponent struct {
		Type        string         `json:"type"`
		Reference   string         `json:"bom-ref,omitempty"`
		Name        string         `json:"name"`
		Version     string         `json:"version,omitempty"`
		Description string         `json:"description,omitempty"`
		Hashes      []cdxHash      `json:"hashes,omitempty"`
		Licenses    []cdxLicense   `json:"licenses,omitempty"`
		PackageURL  string         `json:"purl,omitempty"`
		References  []cdxReference `json:"externalReferences,omitempty"`
		Properties  []cdxProperty  `json:"properties,omitempty"`
	}
	cdxHash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	// cdxLicense has an expression of SPDX, or the name of another license.
	cdxLicense struct {
		Expression string    `json:"expression,omitempty"`
		License    *cdxNamed `json:"license,omitempty"`
	}
	cdxNamed struct {
		Name string `json:"name"`
	}
	cdxReference struct {
		Type string `json:"type"`
		URL  string `json:"url"`
	}
	cdxProperty struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	cdxDependency struct {
		Reference string   `json:"ref"`
		DependsOn []string `json:"dependsOn,omitempty"`
	}
)

// CycloneDX returns a bill in the format CycloneDX 1.6 (JSON), written by a version of xpkg.
func CycloneDX(all []Package, tool string) ([]byte, error) {
	out := cdxDocument{
		Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Components: []cdxComponent{}, Dependencies: []cdxDependency{},
		Metadata: cdxMetadata{cdxTools{[]cdxComponent{{Type: "application", Name: "xpkg", Version: tool}}}},
	}
	for _, p := range inOrder(all) {
		c := cdxComponent{
			Type: "container", Reference: purl(p.Ref), Name: p.Ref.Name(), Version: version(p.Ref),
			Description: p.Description, Hashes: []cdxHash{{"SHA-256", p.Ref.Digest.Hex()}}, PackageURL: purl(p.Ref),
		}
		switch {
		case check.IsSPDXExpression(p.License):
			c.Licenses = []cdxLicense{{Expression: p.License}}
		case p.License != "":
			c.Licenses = []cdxLicense{{License: &cdxNamed{p.License}}}
		}
		if isURL(p.Source) {
			c.References = []cdxReference{{"vcs", p.Source}}
		}
		if p.Kind != "" {
			c.Properties = append(c.Properties, cdxProperty{"xpkg:kind", p.Kind})
		}
		for _, s := range p.Signers {
			c.Properties = append(c.Properties, cdxProperty{"xpkg:signer", s})
		}
		needs := []string{}
		for _, n := range p.Needs {
			needs = append(needs, purl(n))
		}
		slices.Sort(needs)
		out.Components = append(out.Components, c)
		out.Dependencies = append(out.Dependencies, cdxDependency{c.Reference, slices.Compact(needs)})
	}
	return encode(out)
}
