// Package sbom writes bills of materials of packages: which packages and images run, with their digests, licenses,
// signers and dependencies. The same packages have the same bytes.
package sbom

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Package is a package of a bill.
type Package struct {
	// Ref has the tag, if there is one, and the digest.
	Ref oci.Reference
	// Kind is the kind of the package, and empty for an image that is no package.
	Kind                         string
	Description, License, Source string
	// Signers have signed the package.
	Signers []string
	// Needs are the references of the packages and images that it needs, as in Ref.
	Needs []oci.Reference
}

// purl returns the package URL of an image (github.com/package-url/purl-spec, types/oci-definition).
func purl(ref oci.Reference) string {
	query := url.Values{"repository_url": {ref.Name()}}
	if ref.Tag != "" {
		query.Set("tag", ref.Tag)
	}
	return "pkg:oci/" + strings.ToLower(path.Base(ref.Repository)) + "@" + url.PathEscape(ref.Digest.String()) + "?" +
		query.Encode()
}

// inOrder returns packages by their names, each once.
func inOrder(all []Package) []Package {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Package) int {
		return cmp.Or(cmp.Compare(a.Ref.String(), b.Ref.String()), -cmp.Compare(a.Kind, b.Kind))
	})
	return slices.CompactFunc(all, func(a, b Package) bool { return a.Ref == b.Ref })
}

func encode(document any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(document)
	return out.Bytes(), err
}

// version returns the tag, or the digest without one.
func version(ref oci.Reference) string { return cmp.Or(ref.Tag, ref.Digest.String()) }
