package v1alpha1

import (
	"bytes"
	"encoding/json"
)

// UnmarshalJSON reads {"version": ">=v1.0.0"} and, as the first packages wrote
// it, "v0.13.0". Package format, The Packaged Format.
func (c *CrossplaneConstraints) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte(`"`)) {
		return json.Unmarshal(b, &c.Version)
	}
	// The type without methods, which cannot call this function again.
	type object CrossplaneConstraints
	return json.Unmarshal(b, (*object)(c))
}
