package provide

import (
	"encoding/json"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// definition is the part of a CRD or an XRD that names its kinds, in every version of both.
type definition struct {
	Spec struct {
		Group      string `json:"group"`
		Version    string `json:"version"`
		Names      names  `json:"names"`
		ClaimNames names  `json:"claimNames"`
		Versions   []struct {
			Name   string          `json:"name"`
			Served bool            `json:"served"`
			Schema json.RawMessage `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

type names struct {
	Kind     string `json:"kind"`
	Plural   string `json:"plural"`
	Singular string `json:"singular"`
}

// serves reports whether the definition serves an API version; empty means any.
func (d *definition) serves(version string) bool {
	if version == "" || d.Spec.Version == version && len(d.Spec.Versions) == 0 {
		return true
	}
	for _, v := range d.Spec.Versions {
		if v.Name == version {
			return v.Served
		}
	}
	return false
}

// DefinesKind reports whether the content of a package defines a kind and serves its version. A Function defines none:
// its CRDs describe its input.
func DefinesKind(pkg *xpkg.Package, ref dependency.KindRef) bool {
	return pkg.Meta.Kind != xpkg.Function && findDefinition(pkg, ref) != nil
}

// CheckSelected fails with KindNotProvided if the content of a package does not define the kinds for which it was
// selected: an index, and a name in a cache, are only claims.
func CheckSelected(reference string, content *xpkg.Package, kinds ...dependency.KindRef) error {
	if k, lacks := lacking(content, kinds); lacks {
		return notProvided(reference, k)
	}
	return nil
}

// lacking returns the first of some kinds that the content of a package does not define, and false if it defines all.
func lacking(content *xpkg.Package, kinds []dependency.KindRef) (dependency.KindRef, bool) {
	for _, k := range kinds {
		if !DefinesKind(content, k) {
			return k, true
		}
	}
	return dependency.KindRef{}, false
}

func notProvided(reference string, kind dependency.KindRef) error {
	return ErrNotProvided.New(
		nil, "%s was selected for %s, but its content does not define the kind or its version", reference, kind,
	)
}

// findDefinition returns the definition of a kind, or nil.
func findDefinition(pkg *xpkg.Package, ref dependency.KindRef) *definition {
	for _, o := range pkg.Objects {
		// The name of a definition is the plural name of its resource with the group.
		if !isDefinition(o.GVK.Kind) || !strings.HasSuffix(o.Name, "."+ref.Group) {
			continue
		}
		text, err := o.JSON()
		if err != nil {
			continue
		}
		var d definition
		if json.Unmarshal(text, &d) != nil {
			continue
		}
		n, c := d.Spec.Names, d.Spec.ClaimNames
		if ref.Matches(d.Spec.Group, n.Kind, n.Plural, n.Singular, c.Kind, c.Plural, c.Singular) && d.serves(ref.Version) {
			return &d
		}
	}
	return nil
}
