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
	Metadata struct {
		Labels      map[string]any `json:"labels"`
		Annotations map[string]any `json:"annotations"`
	} `json:"metadata"`
}

// addLabels adds the changes of the labels and annotations of objects that are in both sets of JSON, by name.
func addLabels(d *crddiff.Diff, from, to map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if to[name] == nil || bytes.Equal(from[name], to[name]) {
			continue
		}
		var a, b labeled
		for object, text := range map[*labeled][]byte{&a: from[name], &b: to[name]} {
			if err := json.Unmarshal(text, object); err != nil {
				return fmt.Errorf("metadata of %s: %w", name, err)
			}
			delete(object.Metadata.Annotations, generatorAnnotation)
		}
		changes := compareTexts(LabelsChanged, "label", crddiff.Care, "selectors can depend on it", a.Metadata.Labels, b.Metadata.Labels)
		changes = append(changes, compareTexts(AnnotationsChanged, "annotation", crddiff.Safe, "", a.Metadata.Annotations, b.Metadata.Annotations)...)
		addChanges(d, name, changes)
	}
	return nil
}

// compareTexts returns the changes of labels or annotations. A changed or removed one has a class, with the effect; an added one is safe.
func compareTexts(t crddiff.Type, what string, class crddiff.Class, effect string, from, to map[string]any) []crddiff.Change {
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
