package oci

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrDigestMismatch is the code for content that does not match its digest.
var ErrDigestMismatch = errcode.Code{
	Name: "DigestMismatch", Class: errcode.Untrusted,
	Cause: "The content does not match its digest: it was damaged or replaced.",
	Fix:   "The content was not used. Try again; if the error persists, do not trust the registry or the network.",
}

// ErrSizeMismatch is the code for content whose size differs from its descriptor.
var ErrSizeMismatch = errcode.Code{
	Name: "SizeMismatch", Class: errcode.Untrusted,
	Cause: "The size of the content differs from its descriptor.",
	Fix:   "The content was not used. Try again; if the error persists, publish the package again.",
}

// verifier returns content and verifies its length and digest. It withholds the last
// bytes until both match, so that a copy never receives wrong content completely, and
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

// unfinished returns the error for content that ends too early.
func (v *verifier) unfinished(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrSizeMismatch.New(
			nil, "content %s ends after %d of %d bytes", v.want.Digest.Short(), v.want.Size-v.left, v.want.Size,
		)
	}
	v.err = err
	return err
}

// finish verifies that the content has ended and that its digest matches.
func (v *verifier) finish() error {
	var one [1]byte
	switch n, err := io.ReadFull(v.r, one[:]); {
	case n > 0:
		return ErrSizeMismatch.New(
			nil, "content %s is longer than %d bytes, the size in its descriptor", v.want.Digest.Short(), v.want.Size,
		)
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

// allocatedAtOnce is the size up to which content is allocated by the size in its descriptor
// before it has arrived, in bytes.
const allocatedAtOnce = 32 << 20

// readVerified returns the whole verified content of want. The caller has compared
// want.Size with a limit.
func readVerified(r io.Reader, want Descriptor) ([]byte, error) {
	// The verifier reads at most want.Size bytes. bytes.Buffer grows unless bytes.MinRead bytes
	// are free for the last read.
	content := bytes.NewBuffer(make([]byte, 0, min(want.Size, allocatedAtOnce)+bytes.MinRead))
	if _, err := content.ReadFrom(VerifyReader(r, want)); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}
