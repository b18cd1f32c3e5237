package planner

import "slices"

// SpecChange is a field of a package that an operation changes.
type SpecChange struct {
	// Field is the path below spec, such as runtimeConfigRef.name.
	Field string
	// Was and Is are the values; "absent" if there is none.
	Was, Is string
}

// SpecChanges returns the fields of the spec of an installed package that the operation changes, except for the package
// reference, which Package has.
func (p *Plan) SpecChanges() []SpecChange {
	if p.Operation != Update {
		return nil
	}
	var was, is map[string]any
	if decode(p.Preconditions.Spec, &was) != nil || decode(specIn(p.Package.Object), &is) != nil {
		return nil
	}
	var d differences
	d.fields("", "", was, is)
	var out []SpecChange
	for _, x := range d {
		out = append(out, SpecChange{Field: x.What[:len(x.What)-len(" in ")], Was: x.Was, Is: x.Is})
	}
	return slices.DeleteFunc(out, func(c SpecChange) bool { return c.Field == "package" })
}
