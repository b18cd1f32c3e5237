package v1alpha1

import (
	"bytes"
	"encoding/json"
)

// UnmarshalJSON accepts {"version": ">=v1.0.0"} and the form of the first packages,
// "v0.13.0". See the package format, "The Packaged Format".
func (c *CrossplaneConstraints) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte(`"`)) {
		return json.Unmarshal(b, &c.Version)
	}
	// The type has no methods, so that decoding does not call UnmarshalJSON again.
	type object CrossplaneConstraints
	return json.Unmarshal(b, (*object)(c))
}
