package xpkg

import "crypto/sha256"

// SHA256 returns the hash of the object's canonical JSON. For an object from an index no
// JSON is read.
func (o Object) SHA256() ([sha256.Size]byte, error) {
	if o.entry != nil {
		return o.entry.SHA256, nil
	}
	text, err := o.JSON()
	return sha256.Sum256(text), err
}

// Labels are the object's own. Values that are no text are left out; an API server
// refuses such an object. The map must not be changed. For an object from an index
// no JSON is read.
func (o Object) Labels() map[string]string { return o.tags().labels }

// Annotations are the object's own, as Labels are.
func (o Object) Annotations() map[string]string { return o.tags().annotations }

func (o Object) tags() tags {
	if o.entry != nil {
		return tags{o.entry.Labels, o.entry.Annotations}
	}
	text, err := o.canonical()
	if err != nil {
		return tags{} // Whoever reads the object learns of it.
	}
	return readTags(text)
}

// tags are the labels and annotations of an object.
type tags struct{ labels, annotations map[string]string }

// readTags reads canonical JSON, whose sorted keys put the metadata near its start.
func readTags(json []byte) tags {
	var t tags
	c := cursor{text: json}
	c.fields(func(key string) bool {
		if key == "metadata" {
			c.fields(func(key string) bool {
				switch key {
				case "annotations":
					t.annotations = c.pairs()
				case "labels":
					t.labels = c.pairs()
				}
				return key < "labels"
			})
		}
		return key < "metadata"
	})
	return t
}

// pairs reads the fields of the object at the cursor that are text; nil when there
// are none.
func (c *cursor) pairs() map[string]string {
	var pairs map[string]string
	c.fields(func(key string) bool {
		if value, ok := c.string(); ok {
			if pairs == nil {
				pairs = map[string]string{}
			}
			pairs[key] = value
		}
		return true
	})
	return pairs
}
