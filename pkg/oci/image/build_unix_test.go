//go:build unix

package image_test

import (
	"bytes"
	"syscall"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

// hardening: C10
func TestBuildIsReproducible(t *testing.T) {
	first := ocitest.Hello(t)
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	t.Chdir(t.TempDir())
	t.Setenv("TZ", "Pacific/Kiritimati")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	t.Setenv("USER", "somebody")
	second := ocitest.Hello(t)
	if first.Digest() != second.Digest() {
		t.Errorf("%s and %s", first.Digest(), second.Digest())
	}
	var a, b bytes.Buffer
	ocitest.Must(t, archive.Write(t.Context(), &a, first, archive.WriteOptions{Name: "acme/hello:v1"}, oci.Limits{}))
	ocitest.Must(t, archive.Write(t.Context(), &b, second, archive.WriteOptions{Name: "acme/hello:v1"}, oci.Limits{}))
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("the archives differ")
	}
}
