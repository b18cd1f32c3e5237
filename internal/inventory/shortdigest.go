package inventory

import "github.com/xpkg-dev/xpkg/internal/lazyregexp"

// longDigest matches the digest of a reference, with the digits of a short digest as its first group.
var longDigest = lazyregexp.New(`(@sha256:[0-9a-f]{12})[0-9a-f]{52}\b`)

// ShortenDigests returns a text with short digests in its references, for a table: packages that were installed from a
// lock file have references with digests, which are longer than a row of a terminal.
func ShortenDigests(text string) string { return longDigest().ReplaceAllString(text, "$1") }
