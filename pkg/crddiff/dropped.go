package crddiff

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Dropped returns a change for each field that objects of a CRD lose when they are stored in another of its versions,
// ordered by path: the API server drops fields that the schema of the version does not describe. There is none if a
// webhook converts the objects, or if one of the versions does not exist.
func Dropped(crd *apiextensionsv1.CustomResourceDefinition, from, to string) []Change {
	a, b := versionNamed(crd, from), versionNamed(crd, to)
	if a == nil || b == nil || !prunes(crd) {
		return nil
	}
	c := &comparison{version: to}
	c.compareStorage(a, b)
	sortChanges(c.changes)
	return c.changes
}

// prunes reports whether the API server converts objects between the versions of a CRD by dropping fields.
func prunes(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return strategy(crd.Spec.Conversion) == string(apiextensionsv1.NoneConverter) && !crd.Spec.PreserveUnknownFields
}

// compareStorage adds the fields that objects that are stored in a version lose when they are stored in another one.
func (c *comparison) compareStorage(a, b *apiextensionsv1.CustomResourceDefinitionVersion) {
	var fields comparison
	fields.compareSchema("", schemaOf(a), schemaOf(b))
	for _, f := range fields.changes {
		isDropped := f.Type == FieldRemoved || f.Type == UnknownFieldsPruned ||
			f.Type == TypeChanged && f.From == "map" && f.To == "object"
		if !isDropped || f.Class != Breaking {
			continue
		}
		what := "the field"
		if f.Type != FieldRemoved {
			what = "its fields that the schema does not describe"
		}
		c.add(
			Breaking, StoredFieldDropped, f.Path, "", "", "", "objects that are stored in %s lose %s when they are written",
			a.Name, what,
		)
	}
}

// compareMovedStorage adds the fields that objects lose when they are stored in the new storage version of a CRD.
func (c *comparison) compareMovedStorage(
	from, to *apiextensionsv1.CustomResourceDefinition, stored []string,
	b *apiextensionsv1.CustomResourceDefinitionVersion,
) {
	if !prunes(to) {
		return
	}
	for i := range from.Spec.Versions {
		if a := &from.Spec.Versions[i]; a.Name != b.Name && slices.Contains(stored, a.Name) {
			c.compareStorage(a, b)
		}
	}
}
