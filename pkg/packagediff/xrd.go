package packagediff

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	crdv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/pkg/crddiff"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/crd"
)

// Types of changes to the fields of an XRD that its CRD does not have.
const (
	ClaimsAdded              crddiff.Type = "ClaimsAdded"
	ClaimsRemoved            crddiff.Type = "ClaimsRemoved"
	ClaimsChanged            crddiff.Type = "ClaimsChanged"
	ConnectionKeysChanged    crddiff.Type = "ConnectionKeysChanged"
	CompositionChanged       crddiff.Type = "CompositionChanged"
	CompositionPolicyChanged crddiff.Type = "CompositionPolicyChanged"
	ObjectMetadataChanged    crddiff.Type = "ObjectMetadataChanged"
)

// A composite is the part of an XRD that its CRD does not have.
type composite struct {
	ClaimNames           *crdv1.CustomResourceDefinitionNames `json:"claimNames"`
	ConnectionSecretKeys []string                             `json:"connectionSecretKeys"`
	Default              named                                `json:"defaultCompositionRef"`
	Enforced             named                                `json:"enforcedCompositionRef"`
	UpdatePolicy         string                               `json:"defaultCompositionUpdatePolicy"`
	DeletePolicy         string                               `json:"defaultCompositeDeletePolicy"`
	Metadata             struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
}

type named struct {
	Name string `json:"name"`
}

// compareXRDs compares two sets of XRDs in JSON, by name: their CRDs, and the fields that only XRDs have.
func compareXRDs(from, to map[string][]byte) (crddiff.Diff, error) {
	a, err := crdsOf(from)
	if err != nil {
		return crddiff.Diff{}, err
	}
	b, err := crdsOf(to)
	if err != nil {
		return crddiff.Diff{}, err
	}
	d, err := crddiff.CRDs(a, b)
	if err != nil {
		return crddiff.Diff{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if to[name] == nil || bytes.Equal(from[name], to[name]) {
			continue
		}
		x, err := compositeOf(name, from[name])
		if err != nil {
			return crddiff.Diff{}, err
		}
		y, err := compositeOf(name, to[name])
		if err != nil {
			return crddiff.Diff{}, err
		}
		addChanges(&d, name, x.compare(y))
	}
	return d, nil
}

func crdsOf(xrds map[string][]byte) (map[string][]byte, error) {
	out := map[string][]byte{}
	for name, text := range xrds {
		converted, err := crd.FromXRD(text)
		if err != nil {
			return nil, fmt.Errorf("CompositeResourceDefinition %s: %w", name, err)
		}
		out[name] = converted
	}
	return out, nil
}

func compositeOf(name string, text []byte) (composite, error) {
	var xrd struct {
		Spec composite `json:"spec"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &xrd); err != nil {
		return composite{}, fmt.Errorf("CompositeResourceDefinition %s: %w", name, err)
	}
	return xrd.Spec, nil
}

// addChanges adds changes of a kind in both sets before those of its fields.
func addChanges(d *crddiff.Diff, name string, changes []crddiff.Change) {
	if len(changes) == 0 {
		return
	}
	at, changed := slices.BinarySearchFunc(
		d.Changed, name, func(c crddiff.ChangedCRD, name string) int { return strings.Compare(c.Name, name) },
	)
	if !changed {
		d.Changed = slices.Insert(d.Changed, at, crddiff.ChangedCRD{Name: name})
		d.Unchanged--
	}
	d.Changed[at].Changes = append(changes, d.Changed[at].Changes...)
}

// compare returns the changes from one state of an XRD to another.
func (a composite) compare(b composite) []crddiff.Change {
	out := compareClaims(a.ClaimNames, b.ClaimNames)
	add := func(class crddiff.Class, t crddiff.Type, subject, from, to, reason string) {
		if from != to {
			out = append(out, crddiff.Change{Class: class, Type: t, Subject: subject, From: from, To: to, Reason: reason})
		}
	}
	keys := func(keep []string, without []string) string {
		return strings.Join(
			slices.DeleteFunc(slices.Clone(keep), func(k string) bool { return slices.Contains(without, k) }), ", ",
		)
	}
	const connectionKeys = "connectionSecretKeys"
	// Without a list, all keys are published.
	switch from, to := a.ConnectionSecretKeys, b.ConnectionSecretKeys; {
	case len(from) == 0:
		add(
			crddiff.Care, ConnectionKeysChanged, connectionKeys, "", keys(to, nil), "connection secrets only have listed keys",
		)
	case len(to) == 0:
		add(crddiff.Safe, ConnectionKeysChanged, connectionKeys, keys(from, nil), "", "connection secrets have all keys")
	default:
		add(crddiff.Breaking, ConnectionKeysChanged, connectionKeys, keys(
			from, to,
		), "", "connection secrets no longer have keys")
		add(crddiff.Safe, ConnectionKeysChanged, connectionKeys, "", keys(to, from), "connection secrets have more keys")
	}
	if b.Enforced.Name == "" {
		add(
			crddiff.Safe, CompositionChanged, "enforcedCompositionRef", a.Enforced.Name, "",
			"composite resources no longer have to use one composition",
		)
	} else {
		add(
			crddiff.Care, CompositionChanged, "enforcedCompositionRef", a.Enforced.Name, b.Enforced.Name,
			"all composite resources move to one composition",
		)
	}
	add(
		crddiff.Care, CompositionChanged, "defaultCompositionRef", a.Default.Name, b.Default.Name,
		"the default composition of new composite resources changed",
	)
	add(crddiff.Care, CompositionPolicyChanged,
		"defaultCompositionUpdatePolicy", cmp.Or(a.UpdatePolicy, "Automatic"), cmp.Or(b.UpdatePolicy, "Automatic"),
		"the default update policy of composite resources changed")
	add(crddiff.Care, CompositionPolicyChanged,
		"defaultCompositeDeletePolicy", cmp.Or(a.DeletePolicy, "Background"), cmp.Or(b.DeletePolicy, "Background"),
		"the default deletion policy of claims changed")
	if !maps.Equal(a.Metadata.Labels, b.Metadata.Labels) || !maps.Equal(a.Metadata.Annotations, b.Metadata.Annotations) {
		out = append(out, crddiff.Change{
			Class: crddiff.Safe, Type: ObjectMetadataChanged, Subject: "metadata",
			Reason: "the labels or annotations of the CRD changed",
		})
	}
	return out
}

// compareClaims compares the names of claims.
func compareClaims(a, b *crdv1.CustomResourceDefinitionNames) []crddiff.Change {
	change := func(class crddiff.Class, t crddiff.Type, from, to, reason string) []crddiff.Change {
		return []crddiff.Change{{Class: class, Type: t, Subject: "claimNames", From: from, To: to, Reason: reason}}
	}
	switch {
	case a == nil && b == nil:
		return nil
	case a == nil:
		return change(crddiff.Safe, ClaimsAdded, "", b.Kind, "a kind of claims was added")
	case b == nil:
		return change(crddiff.Breaking, ClaimsRemoved, a.Kind, "", "the kind of claims was removed")
	case a.Kind != b.Kind || a.Plural != b.Plural:
		return change(crddiff.Breaking, ClaimsChanged, a.Kind+" ("+a.Plural+")", b.Kind+" ("+b.Plural+
			")", "the kind of claims changed")
	case !reflect.DeepEqual(claimAliases(*a), claimAliases(*b)):
		return change(
			crddiff.Care, ClaimsChanged, "", "", "other names of claims changed; commands and clients can depend on them",
		)
	default:
		return nil
	}
}

// claimAliases returns names with the defaults of the API server.
func claimAliases(n crdv1.CustomResourceDefinitionNames) crdv1.CustomResourceDefinitionNames {
	n.Singular = cmp.Or(n.Singular, strings.ToLower(n.Kind))
	n.ListKind = cmp.Or(n.ListKind, n.Kind+"List")
	n.ShortNames, n.Categories = slices.Sorted(slices.Values(n.ShortNames)), slices.Sorted(slices.Values(n.Categories))
	return n
}
