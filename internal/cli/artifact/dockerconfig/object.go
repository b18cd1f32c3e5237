package dockerconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// object is a JSON object that keeps the order and the text of its members, so that an edit changes only the
// edited members of another program's file.
type object struct{ members []member }

type member struct {
	key   string
	value json.RawMessage
}

// UnmarshalJSON reads an object.
func (o *object) UnmarshalJSON(text []byte) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return errors.New("it is not a JSON object")
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		m := member{key: key.(string)} // Keys of an object are always strings.
		if err := dec.Decode(&m.value); err != nil {
			return err
		}
		o.members = append(o.members, m)
	}
	_, err := dec.Token()
	return err
}

// MarshalJSON writes the object.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o.members {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := marshal(m.key)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// get decodes a member. It has no effect if the member does not exist or is null.
func (o *object) get(key string, into any) error {
	i := o.find(key)
	if i < 0 || string(o.members[i].value) == "null" {
		return nil
	}
	return json.Unmarshal(o.members[i].value, into)
}

// set replaces a member or adds it at the end.
func (o *object) set(key string, value any) error {
	raw, err := marshal(value)
	if err != nil {
		return err
	}
	if i := o.find(key); i >= 0 {
		o.members[i].value = raw
		return nil
	}
	o.members = append(o.members, member{key, raw})
	return nil
}

func (o *object) remove(key string) bool {
	n := len(o.members)
	o.members = slices.DeleteFunc(o.members, func(m member) bool { return m.key == key })
	return len(o.members) < n
}

func (o *object) find(key string) int {
	return slices.IndexFunc(o.members, func(m member) bool { return m.key == key })
}

// marshal writes JSON without escapes that only HTML needs.
func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSpace(b.Bytes()), err
}
