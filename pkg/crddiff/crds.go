package crddiff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A Diff is the difference between two sets of CRDs. Names are the names of CRDs:
// plural.group.
type Diff struct {
	// Added and Removed are the names of CRDs in only one set, in order.
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	// Changed are the CRDs whose specs differ, ordered by name.
	Changed []ChangedCRD `json:"changed,omitempty"`
	// Unchanged is the number of CRDs with equal specs.
	Unchanged int `json:"unchanged"`
}

// A ChangedCRD is a CRD in both sets.
type ChangedCRD struct {
	Name    string   `json:"name"`
	Changes []Change `json:"changes"`
}

// Class returns the highest class of the difference. A removed CRD is breaking.
func (d Diff) Class() Class {
	worst := Safe
	if len(d.Removed) > 0 {
		worst = Breaking
	}
	for _, c := range d.Changed {
		worst = max(worst, Max(c.Changes))
	}
	return worst
}

// CRDs compares two sets of CRDs in canonical JSON of apiextensions.k8s.io/v1, by name. It reports an error if a CRD
// that differs cannot be decoded.
func CRDs(from, to map[string][]byte) (Diff, error) {
	var d Diff
	for _, name := range slices.Sorted(maps.Keys(from)) {
		next, exists := to[name]
		if !exists {
			d.Removed = append(d.Removed, name)
			continue
		}
		changes, err := compareJSON(from[name], next)
		if err != nil {
			return Diff{}, fmt.Errorf("CustomResourceDefinition %s: %w", name, err)
		}
		if len(changes) == 0 {
			d.Unchanged++
			continue
		}
		d.Changed = append(d.Changed, ChangedCRD{name, changes})
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if _, exists := from[name]; !exists {
			d.Added = append(d.Added, name)
		}
	}
	return d, nil
}

// compareJSON compares two CRDs, and decodes their specs only if they differ.
func compareJSON(from, to []byte) ([]Change, error) {
	if bytes.Equal(from, to) {
		return nil, nil
	}
	a, err := partsOf(from)
	if err != nil {
		return nil, err
	}
	b, err := partsOf(to)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(a.Spec, b.Spec) {
		return nil, nil
	}
	x, err := a.decode()
	if err != nil {
		return nil, err
	}
	y, err := b.decode()
	if err != nil {
		return nil, err
	}
	return CRD(x, y), nil
}

// parts are the parts of a CRD that are compared.
type parts struct {
	Spec   json.RawMessage
	Status struct{ StoredVersions []string }
}

func partsOf(text []byte) (parts, error) {
	var p parts
	err := json.Unmarshal(text, &p)
	return p, err
}

func (p parts) decode() (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Status.StoredVersions = p.Status.StoredVersions
	return crd, json.Unmarshal(p.Spec, &crd.Spec)
}
