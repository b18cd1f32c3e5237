//go:build unix

package oci

import (
	"bytes"
	"syscall"
	"testing"
)

func TestC10BuildIsReproducible(t *testing.T) {
	first := buildHello(t)
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	t.Chdir(t.TempDir())
	t.Setenv("TZ", "Pacific/Kiritimati")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	t.Setenv("USER", "somebody")
	second := buildHello(t)
	if first.Digest() != second.Digest() {
		t.Errorf("%s and %s", first.Digest(), second.Digest())
	}
	var a, b bytes.Buffer
	must(t, WriteArchive(t.Context(), &a, first, ArchiveOptions{Name: "acme/hello:v1"}, Limits{}))
	must(t, WriteArchive(t.Context(), &b, second, ArchiveOptions{Name: "acme/hello:v1"}, Limits{}))
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("the archives differ")
	}
}
