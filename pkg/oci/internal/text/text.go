// Package text prepares untrusted text, such as names in archives and responses of
// registries, for messages.
package text

import "strings"

// maxClipped is the number of bytes of a value that a message shows.
const maxClipped = 120

// Clip returns s, or its first 120 bytes and an ellipsis if it is longer, so that the
// length of a message is limited.
func Clip(s string) string { return ClipTo(s, maxClipped) }

// ClipTo returns s, or its first most bytes and an ellipsis if it is longer. The result
// is valid UTF-8 if s is.
func ClipTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
