package apply

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// compositesPath is the path of the XRDs.
const compositesPath = "/apis/apiextensions.crossplane.io/v1/compositeresourcedefinitions"

// held refuses XRDs whose CRDs have another holder.
func (f *preflight) held(ctx context.Context, changes []plan.Change) error {
	crds := map[plan.Ref][]plan.Change{}
	var refs []plan.Ref
	for _, ch := range changes {
		if ch.MetadataOnly || ch.Ref.Kind != kindXRD {
			continue
		}
		d, err := f.definition(ch.Ref)
		if err != nil {
			return err
		}
		for _, names := range d.kinds() {
			crd := plan.DefinitionRef(names.Plural + "." + d.Spec.Group)
			crds[crd], refs = append(crds[crd], ch), append(refs, crd)
		}
	}
	live, err := f.cluster.Metadata(ctx, refs)
	if err != nil {
		return err
	}
	for crd, l := range live {
		for _, ch := range crds[crd] {
			if r, refused := plan.HeldCRD(ch.Ref, l, ch.Owners); refused {
				f.refuse(r)
			}
		}
	}
	return nil
}

// addComposites adds the kinds that the XRDs of some groups define and that the API server does not serve. Without
// Crossplane core, it serves none of them.
func (c *Cluster) addComposites(ctx context.Context, groups map[string]bool, taken map[string][]plan.Names) error {
	read := c.readComposites
	if c.definitions.isQuiet(groups) {
		read = func(ctx context.Context) ([]partial, error) { return c.composites.Get(ctx, Recent, c.readComposites) }
	}
	all, err := read(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		item := &all[i]
		ref := plan.Ref{APIVersion: "apiextensions.crossplane.io/v1", Kind: kindXRD, Name: item.Metadata.Name}
		group := groupOf(ref)
		if !groups[group] {
			continue
		}
		raw, exists, err := c.object(ctx, ref)
		if err != nil {
			return classify(err, "read %s %s", ref.Kind, ref.Name)
		}
		if !exists {
			continue
		}
		d, err := parseDefinition(ref, raw)
		if err != nil {
			return err
		}
		for _, names := range d.kinds() {
			if slices.ContainsFunc(taken[group], func(o plan.Names) bool { return o.Plural == names.Plural }) {
				continue
			}
			names.Definition = item.live(ref)
			taken[group] = append(taken[group], names)
		}
	}
	return nil
}

// readComposites returns the metadata of the XRDs; without their API, there are none.
func (c *Cluster) readComposites(ctx context.Context) ([]partial, error) {
	raw, err := c.get(ctx, metadataList, nil, compositesPath)
	if notServed(err) {
		return nil, nil
	}
	var list struct {
		Items []partial `json:"items"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return nil, classify(err, "list the CompositeResourceDefinitions")
	}
	return list.Items, nil
}

// fixedFields are the fields that never change once they are set, by kind. Rules in the CRDs of Crossplane reject the
// changes; other definitions of the kinds accept them, and Crossplane then ignores them.
var fixedFields = map[string][][]string{
	kindXRD:          {{"spec", "claimNames"}, {"spec", "enforcedCompositionRef"}, {"spec", "names"}},
	"Composition":    {{"spec", "compositeTypeRef"}},
	"WatchOperation": {{"spec", "watch", "apiVersion"}, {"spec", "watch", "kind"}},
}

// fixed refuses changes of fixed fields, and of the scope and the group of an XRD. It reports whether the object
// exists.
func (f *preflight) fixed(ctx context.Context, ref plan.Ref) (exists bool, err error) {
	content, err := f.content(ref)
	if err != nil {
		return false, err
	}
	want, err := decodeFixed(ref, content)
	if err != nil {
		return false, err
	}
	raw, exists, err := f.cluster.object(ctx, ref)
	if err != nil || !exists {
		return false, err
	}
	live, err := decodeFixed(ref, raw)
	if err != nil {
		return false, err
	}
	f.refuse(plan.Immutable(ref, live, want)...)
	return true, nil
}

// decodeFixed returns the definition of an XRD, and an empty one for other kinds, with the fixed fields of the object.
func decodeFixed(ref plan.Ref, raw []byte) (out plan.Definition, err error) {
	if ref.Kind == kindXRD {
		if out, err = decodeDefinition(ref, raw); err != nil {
			return out, err
		}
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return out, ErrContent.New(err, "read %s %s", ref.Kind, ref.Name)
	}
	out.Fixed = map[string]string{}
	for _, path := range fixedFields[ref.Kind] {
		value, found, err := unstructured.NestedFieldNoCopy(object, path...)
		if err != nil || !found {
			continue
		}
		canonical, err := json.Marshal(value)
		if err != nil {
			return out, err
		}
		out.Fixed[strings.Join(path, ".")] = string(canonical)
	}
	return out, nil
}
