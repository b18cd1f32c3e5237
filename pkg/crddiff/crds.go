package crddiff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
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
	names := slices.Sorted(maps.Keys(from))
	compared := compareAll(names, from, to)
	for i, name := range names {
		switch {
		case to[name] == nil:
			d.Removed = append(d.Removed, name)
		case compared[i].err != nil:
			return Diff{}, fmt.Errorf("CustomResourceDefinition %s: %w", name, compared[i].err)
		case len(compared[i].changes) == 0:
			d.Unchanged++
		default:
			d.Changed = append(d.Changed, ChangedCRD{name, compared[i].changes})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if _, exists := from[name]; !exists {
			d.Added = append(d.Added, name)
		}
	}
	return d, nil
}

// result is the result of a comparison.
type result struct {
	changes []Change
	err     error
}

// compareAll compares the CRDs with the given names that are in both sets, on all processors.
func compareAll(names []string, from, to map[string][]byte) []result {
	out := make([]result, len(names))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		if to[name] == nil {
			continue
		}
		g.Go(func() error {
			out[i].changes, out[i].err = compareJSON(from[name], to[name])
			return nil
		})
	}
	_ = g.Wait()
	return out
}

// compareJSON compares two CRDs, and decodes their specs only if they differ.
func compareJSON(from, to []byte) ([]Change, error) {
	if bytes.Equal(from, to) || bytes.Equal(fromSpec(from), fromSpec(to)) {
		return nil, nil
	}
	x, err := decode(from)
	if err != nil {
		return nil, err
	}
	y, err := decode(to)
	if err != nil {
		return nil, err
	}
	return CRD(x, y), nil
}

// fromSpec returns the text from the value of spec to the end, and all of it if there is no spec. The order of the keys
// of canonical JSON puts the metadata before it, the only part that differs in most of the CRDs of a release.
func fromSpec(text []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(text))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return text
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return text
		}
		if key == "spec" {
			return text[d.InputOffset():]
		}
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			return text
		}
	}
	return text
}

// decode decodes the parts of a CRD that are compared.
func decode(text []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	var parts struct {
		Spec   apiextensionsv1.CustomResourceDefinitionSpec
		Status struct{ StoredVersions []string }
	}
	err := json.Unmarshal(text, &parts)
	crd := &apiextensionsv1.CustomResourceDefinition{Spec: parts.Spec}
	crd.Status.StoredVersions = parts.Status.StoredVersions
	return crd, err
}
