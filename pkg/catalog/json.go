package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// encodeJSON returns compact JSON without HTML escapes. Fields are in the order of the type.
func encodeJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil // The types of this package can be encoded.
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// decodeStrict decodes one JSON value, without unknown fields and without text after it.
func decodeStrict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the end of the value")
	}
	return nil
}
