package apply

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// active is the state of a ManagedResourceDefinition whose kind is served.
const active = "Active"

// keepsState reports whether a change must not write spec.state of the live object. A package states only the initial
// state of a ManagedResourceDefinition. A user activates the kind later, and it must never become inactive again.
func keepsState(ch plan.Change) bool {
	return ch.Ref.Kind == "ManagedResourceDefinition" && ch.Action != plan.Create && !ch.MetadataOnly
}

// state reads spec.state of an object. It is empty if the object has none.
func (c *Cluster) state(ctx context.Context, path, name string) (string, error) {
	raw, err := c.get(ctx, "application/json", nil, path, name)
	if err != nil {
		return "", err
	}
	var object struct {
		Spec struct {
			State string `json:"state"`
		} `json:"spec"`
	}
	err = json.Unmarshal(raw, &object)
	return object.Spec.State, err
}

// withState returns spec with the state of the live object, unless the package states that it is active.
func withState(spec json.RawMessage, live string) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(spec, &fields); err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	var says string
	if raw, ok := fields["state"]; ok {
		if err := json.Unmarshal(raw, &says); err != nil {
			return nil, fmt.Errorf("spec.state: %w", err)
		}
	}
	if says == active {
		return spec, nil
	}
	raw, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	fields["state"] = raw
	return json.Marshal(fields)
}
