package planner

import (
	"context"
	"encoding/json"
	"slices"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
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

// runtimeChanges returns the fields in which the runtime configuration of the new revision differs
// from the configuration of the running revision. It returns nil if a configuration cannot be read,
// which checkRuntime reports.
func (pl *Planner) runtimeChanges(ctx context.Context, s *clusterState, p v1.Package, t revision.Transition) []SpecChange {
	i := slices.IndexFunc(t.Before, revision.IsActive)
	if s.live == nil || p.RuntimeSpec() == nil || i < 0 {
		return nil
	}
	configOf := func(of v1.Package, rev v1.PackageRevision) (map[string]any, error) {
		_, config, err := pl.runtimeConfig(ctx, of, rev)
		if err != nil || config == nil {
			return nil, err
		}
		raw, err := json.Marshal(config.Spec)
		if err != nil {
			return nil, err
		}
		out := map[string]any{}
		return out, decode(raw, &out)
	}
	was, err := configOf(s.live, t.Before[i])
	if err != nil {
		return nil
	}
	is, err := configOf(p, t.Current)
	if err != nil {
		return nil
	}
	return changedFields("", was, is)
}
