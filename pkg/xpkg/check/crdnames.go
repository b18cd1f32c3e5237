package check

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/kinds"
)

// ErrDuplicateCRDName is the code for two CRDs of one package that define the same kind or resource.
var ErrDuplicateCRDName = errcode.Code{
	Name: "DuplicateCRDName", Class: errcode.Invalid,
	Cause: "Two CustomResourceDefinitions of one group have the same kind, plural, singular, short or list name. An API server serves only one of them.",
	Fix:   "Rename one of them, or remove it.",
}

// crdNames are the names that a CRD defines in its group.
type crdNames struct {
	Plural     string   `json:"plural"`
	Singular   string   `json:"singular"`
	ShortNames []string `json:"shortNames"`
	Kind       string   `json:"kind"`
	ListKind   string   `json:"listKind"`
}

// crdName is one name: of a kind, or of a resource.
type crdName struct {
	path, value string
	isKind      bool
}

// fields returns the names with the defaults of an API server, which compares the names of
// kinds, and those of resources, with the names of the other CRDs of the group.
func (n crdNames) fields() []crdName {
	out := []crdName{
		{"kind", n.Kind, true}, {"listKind", cmp.Or(n.ListKind, n.Kind+"List"), true},
		{"plural", n.Plural, false}, {"singular", cmp.Or(n.Singular, strings.ToLower(n.Kind)), false},
	}
	for i, short := range n.ShortNames {
		out = append(out, crdName{fmt.Sprintf("shortNames[%d]", i), short, false})
	}
	return out
}

// checkCRDNames reports the names of each CRD that a CRD before it in the package defines. The
// CRDs of a Function are never installed.
func checkCRDNames(objects []*objectChecker) {
	type name struct {
		group  string
		isKind bool
		value  string
	}
	owners := map[name]*objectChecker{}
	for _, c := range objects {
		if c.object.GVK.Group != kinds.GroupCRD || c.pkg.Meta.Kind == xpkg.Function {
			continue
		}
		for _, field := range c.crd.Names.fields() {
			key := name{c.crd.Group, field.isKind, field.value}
			owner := owners[key]
			if owner == nil {
				owners[key] = c
			} else if owner != c && field.value != "" {
				path := "spec.names." + field.path
				c.finding(ErrDuplicateCRDName, path, "%s %.100q is also a name in %.300s", path, field.value, owner.object.Name)
			}
		}
	}
}
