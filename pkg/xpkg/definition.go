package xpkg

import (
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/canonical"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/kinds"
)

// A Definition is a kind that an object of a package defines: a CRD, an MRD or an XRD. An XRD with claims defines two.
type Definition struct {
	Group, Kind, Plural, Singular string
	ShortNames                    []string
	// Scope is Namespaced or Cluster.
	Scope string
	// Claim reports whether the kind is the claim of an XRD.
	Claim bool
	// Managed reports whether the kind has the category of managed resources. Other kinds of a Provider configure it.
	Managed bool
	// Versions are in the order of the object.
	Versions []DefinedVersion
}

// A DefinedVersion is an API version of a Definition.
type DefinedVersion struct {
	Name string
	// Served, Storage and Deprecated are as in the object. The storage version of an XRD is the referenceable one.
	Served, Storage, Deprecated bool
}

// Definitions returns the kinds that the object defines, and none for objects that define no kinds. Fields of the wrong
// type are empty. The error is the error of JSON.
func (o Object) Definitions() ([]Definition, error) {
	if o.KnownDefinitions != nil {
		return o.KnownDefinitions, nil
	}
	if !o.definesKinds() {
		return nil, nil
	}
	text, err := o.JSON()
	if err != nil {
		return nil, err
	}
	r := definitionReader{at: canonical.Cursor{Text: text}, version: o.GVK.Version}
	return r.read(o.GVK.Kind == kinds.XRD), nil
}

func (o Object) definesKinds() bool {
	switch o.GVK.Kind {
	case kinds.CRD:
		return o.GVK.Group == kinds.GroupCRD
	case kinds.XRD, kinds.MRD:
		return o.GVK.Group == kinds.GroupComposition
	}
	return false
}

// definitionReader reads the spec of a CRD, MRD or XRD from canonical JSON without decoding the schemas.
type definitionReader struct {
	at            canonical.Cursor
	version       string // the API version of the object
	group, scope  string
	names, claims names
	// single is spec.version of a CRD of apiextensions.k8s.io/v1beta1.
	single   string
	versions []DefinedVersion
}

// names are the names of a kind.
type names struct {
	kind, plural, singular string
	short                  []string
	managed                bool
}

// managedCategory is the category of managed resources.
const managedCategory = "managed"

func (r *definitionReader) read(composite bool) []Definition {
	r.at.Fields(func(key string) bool {
		if key == "spec" {
			r.at.Fields(r.spec)
		}
		return key < "spec"
	})
	if len(r.versions) == 0 && r.single != "" {
		r.versions = []DefinedVersion{{Name: r.single, Served: true, Storage: true}}
	}
	if r.names.kind == "" {
		return []Definition{}
	}
	if !composite {
		return []Definition{r.definition(r.names, r.scope)}
	}
	switch {
	case r.scope == "LegacyCluster", r.scope == "" && r.version != "v2":
		r.scope = "Cluster"
	case r.scope == "":
		r.scope = "Namespaced"
	}
	out := []Definition{r.definition(r.names, r.scope)}
	if r.claims.kind != "" {
		claim := r.definition(r.claims, "Namespaced")
		claim.Claim = true
		out = append(out, claim)
	}
	return out
}

func (r *definitionReader) definition(n names, scope string) Definition {
	if n.singular == "" {
		n.singular = strings.ToLower(n.kind)
	}
	return Definition{
		Group: r.group, Kind: n.kind, Plural: n.plural, Singular: n.singular, ShortNames: n.short, Scope: scope,
		Managed: n.managed, Versions: r.versions,
	}
}

func (r *definitionReader) spec(key string) bool {
	switch key {
	case "group":
		r.group, _ = r.at.String()
	case "scope":
		r.scope, _ = r.at.String()
	case "version":
		r.single, _ = r.at.String()
	case "names":
		r.names = r.readNames()
	case "claimNames":
		r.claims = r.readNames()
	case "versions":
		r.list(func() { r.versions = append(r.versions, r.readVersion()) })
	}
	return true
}

// list calls visit for each element of the array at the cursor, if there is one.
func (r *definitionReader) list(visit func()) {
	if r.at.Text[r.at.At] == '[' {
		r.at.Elements(visit)
	}
}

func (r *definitionReader) readNames() (n names) {
	r.at.Fields(func(key string) bool {
		switch key {
		case "kind":
			n.kind, _ = r.at.String()
		case "plural":
			n.plural, _ = r.at.String()
		case "singular":
			n.singular, _ = r.at.String()
		case "categories":
			r.list(func() {
				s, _ := r.at.String()
				n.managed = n.managed || s == managedCategory
			})
		case "shortNames":
			r.list(func() {
				if s, ok := r.at.String(); ok {
					n.short = append(n.short, s)
				}
			})
		}
		return true
	})
	return n
}

func (r *definitionReader) readVersion() (v DefinedVersion) {
	r.at.Fields(func(key string) bool {
		value := r.at.Text[r.at.At] == 't'
		switch key {
		case "name":
			v.Name, _ = r.at.String()
		case "served":
			v.Served = value
		case "storage", "referenceable":
			v.Storage = v.Storage || value
		case "deprecated":
			v.Deprecated = value
		}
		return true
	})
	return v
}
