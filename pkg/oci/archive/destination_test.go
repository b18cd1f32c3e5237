package archive

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/assembly"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

func TestArchiveThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	img := ocitest.Hello(t)
	_, err := oci.Copy(t.Context(), ToFile(filepath.Join(dir, "no", "x.xpkg"), WriteOptions{}, oci.Limits{}), img)
	ocitest.WantCode(t, err, ErrCannotWrite)

	ocitest.Must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	_, err = oci.Copy(t.Context(), ToFile(filepath.Join(dir, "folder"), WriteOptions{}, oci.Limits{}), img)
	ocitest.WantCode(t, err, ErrCannotWrite)

	// An incomplete artifact never appears.
	broken := &assembly.Assembly{Desc: img.Root()}
	broken.Add(img.Digest(), assembly.BytesSource(img.RawManifest()))
	_, err = oci.Copy(t.Context(), ToFile(filepath.Join(dir, "x.xpkg"), WriteOptions{}, oci.Limits{}), broken)
	ocitest.WantCode(t, err, oci.ErrBlobNotFound)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}
