package oci

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// ErrInvalidDigest is the code for a malformed digest.
var ErrInvalidDigest = errcode.Code{
	Name: "InvalidDigest", Class: errcode.Invalid,
	Cause: "A digest is not \"sha256:\" followed by 64 lower-case hexadecimal digits.",
	Fix:   "Copy the whole digest, for example from the output of `xpkg inspect`.",
}

// ErrUnsupportedDigest is the code for a digest of another algorithm.
var ErrUnsupportedDigest = errcode.Code{
	Name: "UnsupportedDigest", Class: errcode.Unsupported,
	Cause: "A digest uses an algorithm other than sha256.",
	Fix:   "Publish the package with sha256 digests, as every common tool does.",
}

const (
	digestPrefix   = "sha256:"
	artifactPrefix = "sha256-"
)

// Digest is the sha256 digest of some content. A Digest is always well-formed. The zero
// value means "no digest" and is never the digest of content. Digests are comparable and
// can be map keys.
type Digest struct {
	sum [sha256.Size]byte
}

// ParseDigest parses "sha256:" and 64 lower-case hexadecimal digits. It rejects every
// other form; the error names an unsupported algorithm.
func ParseDigest(s string) (Digest, error) {
	algorithm, value, found := strings.Cut(s, ":")
	if !found {
		return Digest{}, ErrInvalidDigest.New(nil, "digest %q has no algorithm", text.Clip(s))
	}
	if algorithm != "sha256" {
		switch algorithm {
		case "sha512", "sha384", "blake3", "md5", "sha1":
			return Digest{}, ErrUnsupportedDigest.New(nil, "digest algorithm %s is not supported", algorithm)
		}
		return Digest{}, ErrInvalidDigest.New(nil, "digest %q has an unknown algorithm", text.Clip(s))
	}
	if len(value) != 2*sha256.Size {
		return Digest{}, ErrInvalidDigest.New(
			nil, "digest %q has %d characters after the colon, want %d", text.Clip(s), len(value), 2*sha256.Size,
		)
	}
	if i := strings.IndexFunc(value, notLowerHex); i >= 0 {
		return Digest{}, ErrInvalidDigest.New(
			nil, "digest %q has a character that is not a lower-case hexadecimal digit at position %d", text.Clip(s),
			len(digestPrefix)+i+1,
		)
	}
	var d Digest
	if _, err := hex.Decode(d.sum[:], []byte(value)); err != nil {
		return Digest{}, ErrInvalidDigest.New(err, "digest %q cannot be read", text.Clip(s))
	}
	if d.IsZero() {
		// No content has this digest: the zero value means "no digest".
		return Digest{}, ErrInvalidDigest.New(nil, "digest %q is all zeros", text.Clip(s))
	}
	return d, nil
}

// MustParseDigest is like ParseDigest but panics on a malformed digest. It is intended
// for constants.
func MustParseDigest(s string) Digest {
	d, err := ParseDigest(s)
	if err != nil {
		panic(err)
	}
	return d
}

// DigestOf returns the digest of data.
func DigestOf(data []byte) Digest {
	return Digest{sum: sha256.Sum256(data)}
}

// DigestReader returns the digest and the length of the content of r.
func DigestReader(r io.Reader) (Digest, int64, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	if err != nil {
		return Digest{}, n, fmt.Errorf("cannot read content to compute its digest: %w", err)
	}
	var d Digest
	h.Sum(d.sum[:0])
	return d, n, nil
}

// IsZero reports whether d is the zero value.
func (d Digest) IsZero() bool { return d == Digest{} }

// Hex returns the 64 hexadecimal digits without the algorithm, or "" for the zero value.
func (d Digest) Hex() string {
	if d.IsZero() {
		return ""
	}
	return hex.EncodeToString(d.sum[:])
}

// ArtifactTag returns the tag of an artifact that refers to other content, such as a signature: sha256-HEX with a
// suffix. The tag without a suffix has the list of referrers in registries without the API for it.
func ArtifactTag(subject Digest, suffix string) string {
	return artifactPrefix + subject.Hex() + suffix
}

// ParseArtifactTag returns the content that an artifact with the tag refers to, and the suffix; see [ArtifactTag]. It
// returns false for any other tag.
func ParseArtifactTag(tag string) (subject Digest, suffix string, ok bool) {
	rest, ok := strings.CutPrefix(tag, artifactPrefix)
	if !ok || len(rest) < 2*sha256.Size {
		return Digest{}, "", false
	}
	subject, err := ParseDigest(digestPrefix + rest[:2*sha256.Size])
	if err != nil {
		return Digest{}, "", false
	}
	return subject, rest[2*sha256.Size:], true
}

// Short returns the first 12 characters of Hex, the form in the names of revisions. Use
// it for display only.
func (d Digest) Short() string {
	if d.IsZero() {
		return ""
	}
	return hex.EncodeToString(d.sum[:6])
}

// String returns "sha256:" followed by Hex, or "" for the zero value.
func (d Digest) String() string {
	if d.IsZero() {
		return ""
	}
	return digestPrefix + d.Hex()
}

// MarshalText implements [encoding.TextMarshaler].
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler] with the rules of
// ParseDigest; the empty text is the zero value.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*d = Digest{}
		return nil
	}
	parsed, err := ParseDigest(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

func notLowerHex(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'f')
}

// Digester computes the digest of the bytes that are written to it.
type Digester struct{ hash.Hash }

// NewDigester returns a Digester of empty content.
func NewDigester() Digester { return Digester{sha256.New()} }

// Digest returns the digest of the bytes written so far.
func (d Digester) Digest() Digest {
	var out Digest
	d.Sum(out.sum[:0])
	return out
}

// Compare orders digests by their text.
func (d Digest) Compare(other Digest) int { return bytes.Compare(d.sum[:], other.sum[:]) }
