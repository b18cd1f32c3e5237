package storage

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"path/filepath"
	"strings"
)

// Digest is the digest of content, such as "sha256:" and 64 hexadecimal digits.
type Digest string

// algorithms are the algorithms of digests in the OCI image specification. They name the folders with the content.
var algorithms = map[string]func() hash.Hash{"sha256": sha256.New, "sha512": sha512.New}

// defaultAlgorithm is the algorithm of uploads until their digest is known.
const defaultAlgorithm = "sha256"

// ParseDigest returns the digest in a text.
func ParseDigest(text string) (Digest, error) {
	algorithm, digits, _ := strings.Cut(text, ":")
	newHash := algorithms[algorithm]
	if newHash == nil || len(digits) != hex.EncodedLen(newHash().Size()) ||
		strings.Trim(digits, "0123456789abcdef") != "" {
		return "", fmt.Errorf("%w: %.150q is no digest with sha256 or sha512", ErrDigestInvalid, text)
	}
	return Digest(text), nil
}

// DigestOf returns the digest of content, with the algorithm of another one; sha256 if that is empty.
func DigestOf(content []byte, like Digest) Digest {
	h := like.hash()
	_, _ = h.Write(content) // It never fails.
	return like.of(h)
}

func (d Digest) algorithm() string {
	if d == "" {
		return defaultAlgorithm
	}
	algorithm, _, _ := strings.Cut(string(d), ":")
	return algorithm
}

// hash returns the hash of the algorithm.
func (d Digest) hash() hash.Hash { return algorithms[d.algorithm()]() }

// of returns the digest of a hash with the algorithm of d.
func (d Digest) of(h hash.Hash) Digest {
	return Digest(d.algorithm() + ":" + hex.EncodeToString(h.Sum(nil)))
}

// matches reports whether the digest is that of the content of a reader.
func (d Digest) matches(r io.Reader) (bool, error) {
	h := d.hash()
	_, err := io.Copy(h, r)
	return err == nil && d.of(h) == d, err
}

// file returns the path of the content in the folder of a repository.
func (d Digest) file(dir string) string {
	_, digits, _ := strings.Cut(string(d), ":")
	return filepath.Join(dir, blobsFolder, d.algorithm(), digits)
}

// fallbackTag returns the tag of the referrers of a subject (OCI distribution specification, "Referrers Tag Schema").
func (d Digest) fallbackTag() string {
	const mostDigits = 64
	algorithm, digits, _ := strings.Cut(string(d), ":")
	return algorithm + "-" + digits[:min(len(digits), mostDigits)]
}

// IsTag reports whether the reference of a manifest is a tag and not a digest: a tag contains no colon.
func IsTag(reference string) bool { return !strings.Contains(reference, ":") }
