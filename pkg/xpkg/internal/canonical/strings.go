// Package canonical implements the canonical JSON of package documents: keys in byte order,
// no insignificant space, and only the necessary escapes.
package canonical

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

const hex = "0123456789abcdef"

// AppendString appends s as a JSON string in canonical form: only the quote, the backslash
// and control characters are escaped. The text must be valid UTF-8, as after checkEncoding.
func AppendString(dst, s []byte) []byte {
	dst = append(dst, '"')
	start := 0
	for i, c := range s {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, c)
		start = i + 1
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\t':
		return append(dst, '\\', 't')
	case '\r':
		return append(dst, '\\', 'r')
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// Normalize converts the output of encoding/json to the canonical form: characters that it
// escapes for HTML and JavaScript are unescaped. It reuses the slice.
func Normalize(json []byte) []byte {
	out := json[:0]
	for i := 0; i < len(json); i++ {
		if json[i] != '\\' {
			out = append(out, json[i])
			continue
		}
		i++
		if json[i] != 'u' {
			out = append(out, '\\', json[i])
			continue
		}
		switch r := hexRune(json[i+1 : i+5]); r {
		case '<', '>', '&', 0x2028, 0x2029:
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, json[i-1:i+5]...)
		}
		i += 4
	}
	return out
}

// hexRune decodes the four digits of an escape of encoding/json.
func hexRune(digits []byte) rune {
	var r rune
	for _, c := range digits {
		r <<= 4
		if c >= 'a' {
			r |= rune(c-'a') + 10
		} else {
			r |= rune(c - '0')
		}
	}
	return r
}

// Valid reports whether text is JSON in canonical form.
func Valid(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return false
	}
	again, err := json.Marshal(value)
	return err == nil && bytes.Equal(Normalize(again), text)
}
