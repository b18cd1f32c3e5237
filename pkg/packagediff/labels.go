package packagediff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/crddiff"
)

// Types of changes to the metadata of a CRD or XRD.
const (
	LabelsChanged      crddiff.Type = "LabelsChanged"
	AnnotationsChanged crddiff.Type = "AnnotationsChanged"
)

// generatorAnnotation states the version of the generator of a CRD, which has no effect.
const generatorAnnotation = "controller-gen.kubebuilder.io/version"

// labeled is the metadata of an object. Packages can have values that are no text.
type labeled struct {
	Labels      map[string]any `json:"labels"`
	Annotations map[string]any `json:"annotations"`
}

// labelsOf returns the metadata of an object. It does not read what follows the metadata, most of a CRD.
func labelsOf(text []byte) (labeled, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return labeled{}, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return labeled{}, err
		}
		if key == "metadata" {
			var found labeled
			err := d.Decode(&found)
			delete(found.Annotations, generatorAnnotation)
			return found, err
		}
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			return labeled{}, err
		}
	}
	return labeled{}, nil
}

// addLabels adds the changes of the labels and annotations of objects that are in both sets of JSON, by name.
func addLabels(d *crddiff.Diff, from, to map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if to[name] == nil || bytes.Equal(from[name], to[name]) {
			continue
		}
		a, err := labelsOf(from[name])
		if err != nil {
			return fmt.Errorf("metadata of %s: %w", name, err)
		}
		b, err := labelsOf(to[name])
		if err != nil {
			return fmt.Errorf("metadata of %s: %w", name, err)
		}
		changes := compareTexts(LabelsChanged, "label", crddiff.Care, "selectors can depend on it", a.Labels, b.Labels)
		changes = append(
			changes, compareTexts(AnnotationsChanged, "annotation", crddiff.Safe, "", a.Annotations, b.Annotations)...,
		)
		addChanges(d, name, changes)
	}
	return nil
}

// compareTexts returns the changes of labels or annotations. A changed or removed one has a class, with the effect; an
// added one is safe.
func compareTexts(
	t crddiff.Type, what string, class crddiff.Class, effect string, from, to map[string]any,
) []crddiff.Change {
	if effect != "" {
		effect = "; " + effect
	}
	var out []crddiff.Change
	keys := maps.Clone(from)
	if keys == nil {
		keys = map[string]any{}
	}
	maps.Copy(keys, to)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		before, had := from[key]
		after, has := to[key]
		change := crddiff.Change{Class: class, Type: t, Subject: what + " " + key}
		if had {
			change.From = fmt.Sprint(before)
		}
		if has {
			change.To = fmt.Sprint(after)
		}
		switch {
		case had && has && change.From == change.To:
			continue
		case !had:
			change.Class, change.Reason = crddiff.Safe, "the "+what+" "+key+" was added"
		case !has:
			change.Reason = "the " + what + " " + key + " was removed" + effect
		default:
			change.Reason = "the " + what + " " + key + " changed" + effect
		}
		out = append(out, change)
	}
	return out
}
