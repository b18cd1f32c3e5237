package crddiff

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// CRD returns the changes from one CRD to another of the same name, ordered by version and path. The stored versions
// of from are the versions in its status and its storage version. A nil CRD is not allowed.
func CRD(from, to *apiextensionsv1.CustomResourceDefinition) []Change {
	c := &comparison{}
	c.compareCRD(from, to)
	sortChanges(c.changes)
	return c.changes
}

// comparison collects changes.
type comparison struct {
	// version is the version that is compared; empty for the CRD itself.
	version string
	changes []Change
}

func (c *comparison) add(class Class, t Type, path, subject, from, to, format string, args ...any) {
	c.changes = append(c.changes, Change{
		Class: class, Type: t, Version: c.version, Path: path, Subject: subject, From: from, To: to,
		Reason: fmt.Sprintf(format, args...),
	})
}

func (c *comparison) compareCRD(from, to *apiextensionsv1.CustomResourceDefinition) {
	a, b := from.Spec, to.Spec
	if a.Scope != b.Scope {
		c.add(
			Breaking, ScopeChanged, "", "", string(a.Scope), string(b.Scope), "the scope changed, which the API server rejects",
		)
	}
	if a.Group != b.Group || a.Names.Kind != b.Names.Kind || a.Names.Plural != b.Names.Plural {
		c.add(Breaking, NamesChanged, "", "kind", a.Names.Kind+"."+a.Group, b.Names.Kind+"."+
			b.Group, "the kind or its group changed")
	}
	for _, name := range []struct{ subject, from, to string }{
		{"singular", cmp.Or(
			a.Names.Singular, strings.ToLower(a.Names.Kind),
		), cmp.Or(b.Names.Singular, strings.ToLower(b.Names.Kind))},
		{"listKind", cmp.Or(a.Names.ListKind, a.Names.Kind+"List"), cmp.Or(b.Names.ListKind, b.Names.Kind+"List")},
	} {
		if name.from != name.to && a.Names.Kind == b.Names.Kind {
			c.add(
				Care, NamesChanged, "", name.subject, name.from, name.to, "%s changed; commands and clients can depend on it",
				name.subject,
			)
		}
	}
	for _, names := range []struct {
		subject  string
		from, to []string
	}{
		{"shortNames", a.Names.ShortNames, b.Names.ShortNames}, {"categories", a.Names.Categories, b.Names.Categories},
	} {
		if gone := without(names.from, names.to); len(gone) > 0 {
			c.add(
				Care, NamesChanged, "", names.subject, strings.Join(gone, ", "), "", "%s were removed; commands can depend on them",
				names.subject,
			)
		}
		if added := without(names.to, names.from); len(added) > 0 {
			c.add(Safe, NamesChanged, "", names.subject, "", strings.Join(added, ", "), "%s were added", names.subject)
		}
	}
	if x, y := strategy(a.Conversion), strategy(b.Conversion); x != y {
		c.add(Care, ConversionChanged, "", "", x, y, "the conversion between versions changed")
	} else if !reflect.DeepEqual(webhook(a.Conversion), webhook(b.Conversion)) {
		c.add(Care, ConversionChanged, "", "webhook", "", "", "another webhook converts between versions")
	}
	c.compareVersions(from, to)
}

func strategy(c *apiextensionsv1.CustomResourceConversion) string {
	if c == nil || c.Strategy == "" {
		return string(apiextensionsv1.NoneConverter)
	}
	return string(c.Strategy)
}

func webhook(c *apiextensionsv1.CustomResourceConversion) *apiextensionsv1.WebhookConversion {
	if c == nil {
		return nil
	}
	return c.Webhook
}

// compareVersions compares the lists of versions, and every version of both CRDs.
func (c *comparison) compareVersions(from, to *apiextensionsv1.CustomResourceDefinition) {
	stored := slices.Clone(from.Status.StoredVersions)
	for _, v := range from.Spec.Versions {
		if v.Storage && !slices.Contains(stored, v.Name) {
			stored = append(stored, v.Name)
		}
	}
	for i := range from.Spec.Versions {
		a := &from.Spec.Versions[i]
		c.version = a.Name
		b := versionNamed(to, a.Name)
		switch {
		case b == nil && slices.Contains(stored, a.Name):
			c.add(
				Breaking, StoredVersionRemoved, "", "", "", "",
				"the version was removed, and objects can be stored in it; migrate them first",
			)
		case b == nil && a.Served:
			c.add(Breaking, VersionRemoved, "", "", "", "", "the version was removed")
		case b == nil:
			c.add(Safe, VersionRemoved, "", "", "", "", "the version was removed; it was not served")
		default:
			first := len(c.changes)
			c.compareVersion(a, b)
			if !a.Served && !b.Served {
				withoutClients(c.changes[first:], b.Storage || slices.Contains(stored, a.Name))
			}
		}
	}
	for i := range to.Spec.Versions {
		b := &to.Spec.Versions[i]
		c.version = b.Name
		if versionNamed(from, b.Name) == nil {
			c.add(Safe, VersionAdded, "", "", "", "", "the version was added")
		}
		if was := versionNamed(from, b.Name); b.Storage && (was == nil || !was.Storage) {
			c.add(
				Care, StorageMoved, "", "", storage(from), b.Name, "objects are stored in another version when they are written",
			)
			c.compareMovedStorage(from, to, stored, b)
		}
	}
	c.version = ""
}

// withoutClients corrects the classes of changes of a version that is not served, so that no client reads, writes or
// validates objects with it. If objects are stored in the version, the API server drops fields and sets defaults by its
// schema, whatever version a client uses.
func withoutClients(changes []Change, stored bool) {
	for i := range changes {
		c := &changes[i]
		class := Safe
		if stored {
			switch c.Type {
			case FieldRemoved, TypeChanged, UnknownFieldsPruned:
				if c.Class == Breaking {
					class = Breaking
				}
			case DefaultAdded, DefaultChanged, DefaultRemoved:
				class = Care
			default:
			}
		}
		c.Class = class
		if class == Safe {
			c.Reason += "; the version is not served"
		} else {
			c.Reason += "; the version is not served, but objects are stored in it"
		}
	}
}

func versionNamed(
	crd *apiextensionsv1.CustomResourceDefinition, name string,
) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name == name {
			return &crd.Spec.Versions[i]
		}
	}
	return nil
}

func storage(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

func (c *comparison) compareVersion(a, b *apiextensionsv1.CustomResourceDefinitionVersion) {
	switch {
	case a.Served && !b.Served:
		c.add(Breaking, VersionNotServed, "", "", "", "", "the version is no longer served")
	case !a.Served && b.Served:
		c.add(Safe, VersionServed, "", "", "", "", "the version is served")
	}
	switch {
	case !a.Deprecated && b.Deprecated:
		c.add(Care, VersionDeprecated, "", "", "", "", "the version is deprecated")
	case a.Deprecated && !b.Deprecated:
		c.add(Safe, VersionNotDeprecated, "", "", "", "", "the version is no longer deprecated")
	case a.Deprecated && value(a.DeprecationWarning) != value(b.DeprecationWarning):
		c.add(Safe, DocumentationChanged, "", "deprecationWarning", "", "", "the warning of the deprecated version changed")
	}
	if !reflect.DeepEqual(a.AdditionalPrinterColumns, b.AdditionalPrinterColumns) {
		c.add(Safe, ColumnsChanged, "", "", "", "", "the columns of tables changed")
	}
	c.compareSubresources(a.Subresources, b.Subresources)
	fields := func(v *apiextensionsv1.CustomResourceDefinitionVersion) (out []string) {
		for _, f := range v.SelectableFields {
			out = append(out, f.JSONPath)
		}
		return out
	}
	for _, f := range without(fields(a), fields(b)) {
		c.add(Breaking, SelectableFieldRemoved, f, "", "", "", "field selectors can no longer use the field")
	}
	for _, f := range without(fields(b), fields(a)) {
		c.add(Safe, SelectableFieldAdded, f, "", "", "", "field selectors can use the field")
	}
	c.compareSchema("", schemaOf(a), schemaOf(b))
}

// schemaOf returns the schema of a version. A version without a schema keeps all fields.
func schemaOf(v *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		yes := true
		return &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}
	}
	return v.Schema.OpenAPIV3Schema
}

func (c *comparison) compareSubresources(a, b *apiextensionsv1.CustomResourceSubresources) {
	if a == nil {
		a = &apiextensionsv1.CustomResourceSubresources{}
	}
	if b == nil {
		b = &apiextensionsv1.CustomResourceSubresources{}
	}
	switch {
	case a.Status != nil && b.Status == nil:
		c.add(Breaking, SubresourceRemoved, "", "status", "", "", "the subresource status was removed; clients write it")
	case a.Status == nil && b.Status != nil:
		c.add(
			Care, SubresourceAdded, "", "status", "", "",
			"the subresource status was added; writes of the object ignore .status from now on",
		)
	}
	switch {
	case a.Scale != nil && b.Scale == nil:
		c.add(Breaking, SubresourceRemoved, "", "scale", "", "", "the subresource scale was removed; autoscalers use it")
	case a.Scale == nil && b.Scale != nil:
		c.add(Safe, SubresourceAdded, "", "scale", "", "", "the subresource scale was added")
	case a.Scale != nil && !reflect.DeepEqual(a.Scale, b.Scale):
		c.add(Breaking, SubresourceRemoved, "", "scale", "", "", "the subresource scale uses other fields")
	}
}

// without returns the elements of a that are not in b, in order.
func without(a, b []string) []string {
	in := setOf(b)
	var out []string
	for _, s := range a {
		if !in[s] {
			out = append(out, s)
		}
	}
	return out
}

func setOf(list []string) map[string]bool {
	out := make(map[string]bool, len(list))
	for _, s := range list {
		out[s] = true
	}
	return out
}
