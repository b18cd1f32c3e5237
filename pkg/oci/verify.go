package oci

import (
	"crypto/sha256"
	"errors"
	"hash"
	"io"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrDigestMismatch is the failure of content that is not what its digest names.
var ErrDigestMismatch = errcode.Code{
	Name: "DigestMismatch", Class: errcode.Untrusted,
	Cause: "The bytes that were read are not the ones that the digest names: they were damaged or exchanged.",
	Fix:   "Nothing of them was used. Try again; if it stays, do not trust the registry or the network between.",
}

// ErrSizeMismatch is the failure of content with another length than announced.
var ErrSizeMismatch = errcode.Code{
	Name: "SizeMismatch", Class: errcode.Untrusted,
	Cause: "The size of the content differs from its descriptor.",
	Fix:   "Nothing of it was used. Try again; if it stays, publish the package again.",
}

// verifier passes content through and compares its length and digest. It holds the last
// bytes back until both match, so a copy never receives all bytes of wrong content, and
// never more than size bytes.
type verifier struct {
	r    io.Reader
	want Descriptor
	hash hash.Hash
	left int64
	err  error
}

// VerifyReader returns a reader of r that fails unless r contains exactly the content of
// want.
func VerifyReader(r io.Reader, want Descriptor) io.Reader {
	return &verifier{r: r, want: want, hash: sha256.New(), left: want.Size}
}

func (v *verifier) Read(p []byte) (int, error) {
	if v.err != nil || len(p) == 0 {
		return 0, v.err
	}
	var n int
	var err error
	if v.left > 0 {
		n, err = v.r.Read(p[:min(int64(len(p)), v.left)])
		v.left -= int64(n)
		v.hash.Write(p[:n])
	}
	if v.left > 0 {
		return n, v.unfinished(err)
	}
	if v.err = v.finish(); v.err != nil {
		return 0, v.err
	}
	v.err = io.EOF
	return n, nil
}

// unfinished judges the error of a read before the end of the content.
func (v *verifier) unfinished(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrSizeMismatch.New(nil, "content %s ends after %d of %d bytes", v.want.Digest.Short(), v.want.Size-v.left, v.want.Size)
	}
	v.err = err
	return err
}

// finish proves that nothing follows and that the digest is right.
func (v *verifier) finish() error {
	var one [1]byte
	switch n, err := io.ReadFull(v.r, one[:]); {
	case n > 0:
		return ErrSizeMismatch.New(nil, "content %s is longer than the %d bytes of its descriptor", v.want.Digest.Short(), v.want.Size)
	case err != nil && !errors.Is(err, io.EOF):
		return err
	}
	var got Digest
	v.hash.Sum(got.sum[:0])
	if got != v.want.Digest {
		return ErrDigestMismatch.New(nil, "content has digest %s instead of %s", got, v.want.Digest)
	}
	return nil
}

// readVerified returns the whole verified content of want. The caller has compared
// want.Size with a limit.
func readVerified(r io.Reader, want Descriptor) ([]byte, error) {
	data, err := io.ReadAll(VerifyReader(r, want))
	if err != nil {
		return nil, err
	}
	return data, nil
}
