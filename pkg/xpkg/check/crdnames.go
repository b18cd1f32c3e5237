package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// ErrDuplicateCRDName is the code for two CRDs, XRDs or MRDs of one package that define the same kind or resource.
var ErrDuplicateCRDName = errcode.Code{
	Name: "DuplicateCRDName", Class: errcode.Invalid,
	Cause: "Two definitions (CRDs, XRDs or MRDs) of one group have the same kind, plural, singular, short or list name. An API server serves only one of them.",
	Fix:   "Rename one of them, or remove it.",
}

// crdNames are the names that a CRD, an XRD or an MRD defines in its group.
type crdNames struct {
	Plural     string   `json:"plural"`
	Singular   string   `json:"singular"`
	ShortNames []string `json:"shortNames"`
	Kind       string   `json:"kind"`
	ListKind   string   `json:"listKind"`
}

// crdName is one name: of a kind, or of a resource.
type crdName struct {
	path, value     string
	isKind, isShort bool
}

// fields returns the names below a path, with the defaults of an API server, which compares kinds with kinds and
// resources with resources of the other CRDs in the group.
func (n crdNames) fields(path string) []crdName {
	if n.Plural == "" && n.Kind == "" {
		return nil
	}
	out := []crdName{
		{path: path + ".kind", value: n.Kind, isKind: true},
		{path: path + ".listKind", value: cmp.Or(n.ListKind, n.Kind+"List"), isKind: true},
		{path: path + ".plural", value: n.Plural},
		{path: path + ".singular", value: cmp.Or(n.Singular, strings.ToLower(n.Kind))},
	}
	for i, short := range n.ShortNames {
		out = append(out, crdName{path: fmt.Sprintf("%s.shortNames[%d]", path, i), value: short, isShort: true})
	}
	return out
}

// checkCRDNames reports each name of a definition that an earlier definition of the package has. The CRDs of a
// Function are never installed.
func checkCRDNames(objects []*objectChecker) {
	type name struct {
		group  string
		isKind bool
		value  string
	}
	owners := map[name]*objectChecker{}
	for _, c := range objects {
		if c.pkg.Meta.Kind == xpkg.Function {
			continue
		}
		for _, field := range slices.Concat(c.crd.Names.fields("spec.names"), c.crd.ClaimNames.fields("spec.claimNames")) {
			key := name{c.crd.Group, field.isKind, field.value}
			owner := owners[key]
			if owner == nil {
				owners[key] = c
			} else if owner != c && field.value != "" {
				c.finding(
					ErrDuplicateCRDName, field.path, "%s %.100q is also defined by %.300s", field.path, field.value, owner.object.Name,
				)
			}
		}
	}
}
