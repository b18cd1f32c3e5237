package planner

import (
	"encoding/json"
	"slices"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// SpecChange is a field of a package that an operation changes.
type SpecChange struct {
	// Field is the path below spec, such as runtimeConfigRef.name.
	Field string `json:"field"`
	// Was and Is are the values; "absent" if there is none.
	Was string `json:"was"`
	Is  string `json:"is"`
}

// SpecChanges returns the fields of the spec of an installed package that the operation changes,
// except for the package reference.
func (p *Plan) SpecChanges() []SpecChange {
	if p.Operation != Update {
		return nil
	}
	var was, is map[string]any
	if decode(p.Preconditions.Spec, &was) != nil || decode(specIn(p.Package.Object), &is) != nil {
		return nil
	}
	return slices.DeleteFunc(changedFields("", was, is), func(c SpecChange) bool { return c.Field == "package" })
}

// changes returns the fields in which the runtime configuration of the new revision differs
// from the configuration of the running revision.
func (c *runtimeConfigs) changes() []SpecChange {
	if c == nil {
		return nil
	}
	fields := func(config *v1beta1.DeploymentRuntimeConfig) (map[string]any, error) {
		if config == nil {
			return nil, nil
		}
		raw, err := json.Marshal(config.Spec)
		if err != nil {
			return nil, err
		}
		out := map[string]any{}
		return out, decode(raw, &out)
	}
	was, err := fields(c.was)
	if err != nil {
		return nil
	}
	is, err := fields(c.is)
	if err != nil {
		return nil
	}
	return changedFields("", was, is)
}
