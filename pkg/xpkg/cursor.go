package xpkg

import "encoding/json"

// cursor walks over canonical JSON, which is known to be well-formed, without decoding
// values that are not needed.
type cursor struct {
	text []byte
	at   int
}

// fields calls visit for each field of the object at the cursor, with the cursor on the
// value. Visit keeps the cursor there or moves it past the value; if it returns false,
// reading stops and the cursor position is undefined. fields returns false if there is no
// object at the cursor.
func (c *cursor) fields(visit func(key string) bool) bool {
	if c.at >= len(c.text) || c.text[c.at] != '{' {
		return false
	}
	c.at++
	for c.text[c.at] != '}' {
		key, _ := c.string()
		c.at++ // the colon
		value := c.at
		if !visit(key) {
			return true
		}
		if c.at == value {
			c.skip()
		}
		if c.text[c.at] == ',' {
			c.at++
		}
	}
	c.at++
	return true
}

// string reads the string at the cursor; false when there is none.
func (c *cursor) string() (string, bool) {
	if c.text[c.at] != '"' {
		return "", false
	}
	start := c.at
	escaped := c.skipString()
	if !escaped {
		return string(c.text[start+1 : c.at-1]), true
	}
	var s string
	err := json.Unmarshal(c.text[start:c.at], &s)
	return s, err == nil
}

// skipString moves past the string at the cursor, and reports whether it has escapes.
func (c *cursor) skipString() (escaped bool) {
	for c.at++; c.text[c.at] != '"'; c.at++ {
		if c.text[c.at] == '\\' {
			escaped = true
			c.at++
		}
	}
	c.at++
	return escaped
}

// skip moves past the value at the cursor.
func (c *cursor) skip() {
	for depth := 0; c.at < len(c.text); {
		switch c.text[c.at] {
		case '"':
			c.skipString()
			if depth == 0 {
				return
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // the end of what holds a number or a literal
				return
			}
			if depth--; depth == 0 {
				c.at++
				return
			}
		case ',':
			if depth == 0 {
				return
			}
		}
		c.at++
	}
}

// elements calls visit for each element of the array at the cursor, with the cursor on
// the element. Visit keeps the cursor there or moves it past the element.
func (c *cursor) elements(visit func()) {
	for c.at++; c.text[c.at] != ']'; {
		element := c.at
		visit()
		if c.at == element {
			c.skip()
		}
		if c.text[c.at] == ',' {
			c.at++
		}
	}
	c.at++
}
