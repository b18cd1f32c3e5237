package sbom

import (
	"cmp"
	"net/url"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// The fields of SPDX 2.3 that a bill has (spdx.github.io/spdx-spec/v2.3).
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		DataLicense   string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		Name        string          `json:"name"`
		ID          string          `json:"SPDXID"`
		Version     string          `json:"versionInfo"`
		Location    string          `json:"downloadLocation"`
		Analyzed    bool            `json:"filesAnalyzed"`
		Concluded   string          `json:"licenseConcluded"`
		Declared    string          `json:"licenseDeclared"`
		Copyright   string          `json:"copyrightText"`
		Description string          `json:"description,omitempty"`
		Source      string          `json:"sourceInfo,omitempty"`
		Purpose     string          `json:"primaryPackagePurpose"`
		Checksums   []spdxChecksum  `json:"checksums"`
		References  []spdxReference `json:"externalRefs"`
		Comment     string          `json:"comment,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxReference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

const noAssertion = "NOASSERTION"

// spdxID returns the identifier of an image. References to one digest in several repositories differ.
func spdxID(ref oci.Reference) string {
	return "SPDXRef-Package-" + oci.DigestOf([]byte(ref.String())).Hex()[:32]
}

// SPDX returns a bill in the format SPDX 2.3 (JSON), written by a version of xpkg at a time.
func SPDX(all []Package, tool string, created time.Time) ([]byte, error) {
	out := spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: "xpkg",
		Creation: spdxCreation{created.UTC().Format(time.RFC3339), []string{"Tool: xpkg-" + tool}},
		Packages: []spdxPackage{}, Relationships: []spdxRelationship{},
	}
	identity := ""
	for _, p := range inOrder(all) {
		license := noAssertion
		if check.IsSPDXExpression(p.License) {
			license = p.License
		}
		next := spdxPackage{
			Name: p.Ref.Name(), ID: spdxID(p.Ref), Version: version(p.Ref), Location: noAssertion, Concluded: noAssertion,
			Declared: license, Copyright: noAssertion, Description: p.Description, Purpose: "CONTAINER",
			Checksums:  []spdxChecksum{{"SHA256", p.Ref.Digest.Hex()}},
			References: []spdxReference{{"PACKAGE-MANAGER", "purl", purl(p.Ref)}},
			Comment:    p.Kind,
		}
		if p.Source != "" {
			next.Source = "source: " + p.Source
		}
		for _, s := range p.Signers {
			next.Comment += "; signed by " + s
		}
		out.Packages = append(out.Packages, next)
		out.Relationships = append(out.Relationships, spdxRelationship{out.ID, "DESCRIBES", next.ID})
		for _, n := range p.Needs {
			out.Relationships = append(out.Relationships, spdxRelationship{next.ID, "DEPENDS_ON", spdxID(n)})
		}
		identity += p.Ref.String() + "\n"
	}
	slices.SortFunc(out.Relationships, func(a, b spdxRelationship) int {
		return cmp.Or(cmp.Compare(a.Element, b.Element), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Related, b.Related))
	})
	out.Relationships = slices.Compact(out.Relationships)
	out.Namespace = "https://xpkg.dev/spdx/" + oci.DigestOf([]byte(identity)).Hex()
	return encode(out)
}

// isURL reports whether a text is the address of a web page.
func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}
