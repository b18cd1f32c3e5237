// Package canonical provides the canonical JSON form of objects.
package canonical

import "encoding/json"

// A Cursor traverses well-formed canonical JSON without decoding values that are not
// needed.
type Cursor struct {
	// Text is the JSON.
	Text []byte
	// At is the offset of the cursor.
	At int
}

// Fields calls visit for each field of the object at the cursor, with the cursor on the
// value. Visit keeps the cursor there or moves it past the value; if it returns false,
// reading stops and the cursor position is undefined. Fields returns false if there is no
// object at the cursor.
func (c *Cursor) Fields(visit func(key string) bool) bool {
	if c.At >= len(c.Text) || c.Text[c.At] != '{' {
		return false
	}
	c.At++
	for c.Text[c.At] != '}' {
		key, _ := c.String()
		c.At++ // the colon
		value := c.At
		if !visit(key) {
			return true
		}
		if c.At == value {
			c.Skip()
		}
		if c.Text[c.At] == ',' {
			c.At++
		}
	}
	c.At++
	return true
}

// String reads the string at the cursor. It returns false if there is none.
func (c *Cursor) String() (string, bool) {
	if c.Text[c.At] != '"' {
		return "", false
	}
	start := c.At
	escaped := c.skipString()
	if !escaped {
		return string(c.Text[start+1 : c.At-1]), true
	}
	var s string
	err := json.Unmarshal(c.Text[start:c.At], &s)
	return s, err == nil
}

// skipString moves past the string at the cursor, and reports whether it has escapes.
func (c *Cursor) skipString() (escaped bool) {
	for c.At++; c.Text[c.At] != '"'; c.At++ {
		if c.Text[c.At] == '\\' {
			escaped = true
			c.At++
		}
	}
	c.At++
	return escaped
}

// Skip moves past the value at the cursor.
func (c *Cursor) Skip() {
	for depth := 0; c.At < len(c.Text); {
		switch c.Text[c.At] {
		case '"':
			c.skipString()
			if depth == 0 {
				return
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // the end of the collection that contains a number or a literal
				return
			}
			if depth--; depth == 0 {
				c.At++
				return
			}
		case ',':
			if depth == 0 {
				return
			}
		}
		c.At++
	}
}

// Elements calls visit for each element of the array at the cursor, with the cursor on
// the element. Visit keeps the cursor there or moves it past the element.
func (c *Cursor) Elements(visit func()) {
	for c.At++; c.Text[c.At] != ']'; {
		element := c.At
		visit()
		if c.At == element {
			c.Skip()
		}
		if c.Text[c.At] == ',' {
			c.At++
		}
	}
	c.At++
}
