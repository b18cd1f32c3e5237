package validation

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
)

// validateResources validates the resources of an input of function-patch-and-transform, or of spec.resources, with
// their patches. Parent has the fields resources, patchSets and environment.
func (c *composition) validateResources(at string, parent map[string]any) {
	sets := map[string]patches{}
	list, _ := parent["patchSets"].([]any)
	for i, s := range list {
		name, _ := Object(s)["name"].(string)
		sets[name] = patchesOf(s, fmt.Sprintf("%spatchSets[%d].", at, i))
	}
	environment := patchesOf(parent["environment"], at+"environment.")
	for _, p := range environment {
		c.validatePatch(p, schema.GroupVersionKind{})
	}
	names := map[string]bool{}
	templates, _ := parent["resources"].([]any)
	for i, t := range templates {
		template, here := Object(t), fmt.Sprintf("%sresources[%d].", at, i)
		name, _ := template["name"].(string)
		if names[name] && name != "" {
			c.report(c.resource, ErrInvalidPatch, here+"name", fmt.Sprintf("a resource before has the name %q", name))
		}
		names[name] = true
		c.validateResource(here, template, sets)
	}
}

// validateResource validates the base of a resource and its patches.
func (c *composition) validateResource(at string, template map[string]any, sets map[string]patches) {
	var all patches
	for _, p := range patchesOf(template, at) {
		if p.kind() != "PatchSet" {
			all = append(all, p)
			continue
		}
		name, _ := p.patch["patchSetName"].(string)
		set, ok := sets[name]
		if !ok {
			c.report(c.resource, ErrInvalidPatch, p.at+"patchSetName", fmt.Sprintf("there is no patch set %q", name))
		}
		all = append(all, set...)
	}
	base := Object(template["base"])
	kind := KindOf(base)
	if base == nil || !c.requireKind(c.resource, at+"base.kind", kind) {
		kind = schema.GroupVersionKind{}
	}
	var set []crdvalidation.FieldPath
	for _, p := range all {
		if path := c.validatePatch(p, kind); path != nil {
			set = append(set, path)
		}
	}
	c.validateReads(at, template, kind)
	if base == nil || !c.Schemas.Has(kind) {
		return
	}
	c.validateTemplate(at+"base", base, func(path string) bool { return c.final && !isSet(path, set) })
}

// isSet reports whether a patch sets a field of a resource, or the field of the same name with which a managed resource
// is created.
func isSet(path string, set []crdvalidation.FieldPath) bool {
	for _, name := range []string{path, strings.Replace(path, "spec.forProvider.", "spec.initProvider.", 1)} {
		field, err := crdvalidation.ParseFieldPath(name)
		if err != nil {
			return true
		}
		for _, s := range set {
			if s.Covers(field) {
				return true
			}
		}
	}
	return false
}

// validateReads validates the paths of a resource that its connection details and readiness checks read.
func (c *composition) validateReads(at string, template map[string]any, kind schema.GroupVersionKind) {
	for _, reads := range [][2]string{{"connectionDetails", "fromFieldPath"}, {"readinessChecks", "fieldPath"}} {
		list, _ := template[reads[0]].([]any)
		for i, one := range list {
			if path, ok := Object(one)[reads[1]].(string); ok {
				at := fmt.Sprintf("%s%s[%d].%s", at, reads[0], i, reads[1])
				c.field(at, kind, path, reads[0] == "readinessChecks")
			}
		}
	}
}

// patches are patches with their paths in the Composition.
type patches []locatedPatch

type locatedPatch struct {
	at    string
	patch map[string]any
}

func patchesOf(parent any, at string) patches {
	var out patches
	list, _ := Object(parent)["patches"].([]any)
	for i, p := range list {
		out = append(out, locatedPatch{fmt.Sprintf("%spatches[%d].", at, i), Object(p)})
	}
	return out
}

// kind returns the type of the patch.
func (p locatedPatch) kind() string {
	kind, _ := p.patch["type"].(string)
	return cmp.Or(kind, "FromCompositeFieldPath")
}

// validatePatch validates the paths of a patch, and that the value that it sets has the type of the field. It returns
// the path in the composed resource that the patch sets, or nil. A kind without a name has any fields.
func (c *composition) validatePatch(p locatedPatch, composed schema.GroupVersionKind) crdvalidation.FieldPath {
	from, to := c.composite, composed
	kind := p.kind()
	switch {
	case kind == "PatchSet":
		return nil // reported by the schema of the input
	case strings.Contains(kind, "ToComposite"):
		from, to = composed, c.composite
	case strings.Contains(kind, "FromEnvironment"):
		from = schema.GroupVersionKind{}
	case strings.Contains(kind, "ToEnvironment"):
		from, to = composed, schema.GroupVersionKind{}
	}
	source, _ := p.patch["fromFieldPath"].(string)
	target, hasTarget := p.patch["toFieldPath"].(string)
	var value crdvalidation.FieldType
	required := Object(p.patch["policy"])["fromFieldPath"] == "Required"
	reads := true
	if combine := Object(p.patch["combine"]); combine != nil {
		variables, _ := combine["variables"].([]any)
		for i, one := range variables {
			if path, ok := Object(one)["fromFieldPath"].(string); ok {
				c.field(fmt.Sprintf("%scombine.variables[%d].fromFieldPath", p.at, i), from, path, required)
			}
		}
		value = "string"
	} else if source != "" {
		value, reads = c.field(p.at+"fromFieldPath", from, source, required)
	}
	at := p.at + "toFieldPath"
	if !hasTarget {
		at, target = p.at+"fromFieldPath", source
	}
	if target == "" {
		return nil
	}
	if reads && (hasTarget || from != to) {
		want, ok := c.field(at, to, target, c.applied)
		if got := transformed(value, p.patch["transforms"]); ok && !got.Fits(want) {
			c.report(c.resource, ErrInvalidPatch, at, fmt.Sprintf("%s is of the type %s, and the value is of the type %s",
				target, want, got))
		}
	}
	if strings.Contains(kind, "ToComposite") || strings.Contains(kind, "ToEnvironment") {
		return nil
	}
	path, err := crdvalidation.ParseFieldPath(target)
	if err != nil {
		return nil // reported by field
	}
	return path
}

// transformed returns the type of a value after transforms.
func transformed(t crdvalidation.FieldType, transforms any) crdvalidation.FieldType {
	list, _ := transforms.([]any)
	for _, one := range list {
		o := Object(one)
		switch o["type"] {
		case "string":
			t = "string"
		case "convert":
			to, _ := Object(o["convert"])["toType"].(string)
			t = map[string]crdvalidation.FieldType{
				"string": "string", "int": "integer", "int64": "integer", "bool": "boolean", "float64": "number",
				"object": "object", "array": "array",
			}[to]
		default:
			t = ""
		}
	}
	return t
}

// field returns the type of a field, and reports a path that does not exist: as an error if a cluster refuses it, and
// as a warning if it has no effect. It returns false if it did.
func (c *composition) field(
	at string, kind schema.GroupVersionKind, text string, refused bool,
) (crdvalidation.FieldType, bool) {
	path, err := crdvalidation.ParseFieldPath(text)
	if err != nil {
		c.report(c.resource, ErrInvalidPatch, at, err.Error())
		return "", false
	}
	if !c.Schemas.Has(kind) {
		return "", true
	}
	t, err := c.Schemas.Field(kind, path)
	if err != nil {
		code := ErrIneffectivePath
		if refused {
			code = ErrInvalidPatch
		}
		c.report(c.resource, code, at, fmt.Sprintf("%s has no field %s: %s", kind.Kind, text, err))
		return "", false
	}
	return t, true
}
