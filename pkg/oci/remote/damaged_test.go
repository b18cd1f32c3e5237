package remote

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest/storetest"
)

// hardening: B1, K2
func TestDamagedBlobIsFetchedAgain(t *testing.T) {
	f := ocitest.NewRegistry(t)
	img := ocitest.Hello(t)
	ref := f.Publish(t, img, "v1")
	r, s := testRemote(t, nil), storetest.New(t)
	if _, _, err := fetchYAML(t.Context(), r, s, ref); err != nil {
		t.Fatal(err)
	}
	m, err := img.Manifest()
	ocitest.Must(t, err)
	for _, d := range []oci.Digest{img.Digest(), m.Layers[0].Digest} {
		if err := os.Truncate(filepath.Join(s.Dir(), "blobs", d.Hex()[:2], d.Hex()), 10); err != nil {
			t.Fatal(err)
		}
		if _, _, err := fetchYAML(t.Context(), r, s, ref); err != nil {
			t.Errorf("after %s was damaged: %v", d.Short(), err)
		}
	}
}
