package web

import (
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// overviewKinds is the number of kinds on the first page of a package.
const overviewKinds = 24

// A kindGroup is an API group with kinds.
type kindGroup struct {
	Group string
	// URL is the page of the group, if it exists.
	URL   string
	Kinds []groupedKind
	// Hidden reports that the filter of the page hides all kinds.
	Hidden bool
}

// A groupedKind is a kind in a group. All kinds are on the page: a script can show those that the filter of the server
// hides.
type groupedKind struct {
	catalog.Kind
	Hidden bool
}

// Note returns the words after the name of the kind.
func (k groupedKind) Note() string {
	if k.Role == catalog.Claim {
		return "claim"
	}
	return ""
}

// linkGroups sets the addresses of groups of kinds of a version.
func linkGroups(r *request, at release, groups []kindGroup) (err error) {
	for i := range groups {
		if groups[i].URL, err = groupLink(r, at, groups[i].Group); err != nil {
			return err
		}
	}
	return nil
}

// groupLink returns the page of the API group of a kind of a version; empty if there is none, because no newest version
// has kinds of the group.
func groupLink(r *request, at release, group string) (string, error) {
	if at.Tag != at.Latest {
		kinds, err := r.view.Kinds(r.ctx, group, "", 1)
		if err != nil || len(kinds) == 0 {
			return "", err
		}
	}
	return groupURL(group), nil
}

// filterKinds hides the kinds whose row and group do not contain all words of the filter. The script of the page does
// the same.
func (v *packageView) filterKinds() {
	words := strings.Fields(strings.ToLower(v.Filter))
	v.NoneFit = true
	for i := range v.Groups {
		g := &v.Groups[i]
		g.Hidden = true
		for j := range g.Kinds {
			k := &g.Kinds[j]
			text := strings.ToLower(k.Kind.Kind + " " + strings.Join(k.Served, ", ") + " " + k.Note() + " " + g.Group)
			k.Hidden = slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
			g.Hidden = g.Hidden && k.Hidden
		}
		v.NoneFit = v.NoneFit && g.Hidden
	}
}

// groupKinds groups kinds by API group. At most most kinds are returned, with the number of the others.
func groupKinds(kinds []catalog.Kind, most int) ([]kindGroup, int) {
	sorted := slices.Clone(kinds)
	slices.SortStableFunc(sorted, func(a, b catalog.Kind) int { return strings.Compare(a.Group, b.Group) })
	shown := sorted[:min(len(sorted), most)]
	var out []kindGroup
	for _, k := range shown {
		if n := len(out); n == 0 || out[n-1].Group != k.Group {
			out = append(out, kindGroup{Group: k.Group})
		}
		last := &out[len(out)-1]
		last.Kinds = append(last.Kinds, groupedKind{Kind: k})
	}
	return out, len(kinds) - len(shown)
}
