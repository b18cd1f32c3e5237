package archive

import (
	"bytes"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/race"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

func FuzzArchive(f *testing.F) {
	race.SkipSequential(f)
	for _, c := range malformedCases(f) {
		var out bytes.Buffer
		if err := c.Write(&out); err == nil && out.Len() < 1<<14 {
			f.Add(out.Bytes())
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Read(t.Context(), bytes.NewReader(data), t.TempDir(), 1<<20, oci.Limits{})
		if err != nil {
			if !errcode.Known(err) {
				t.Fatalf("%v", err)
			}
			return
		}
		defer a.Close()
		m, err := oci.FindManifest(t.Context(), a, oci.Platform{}, oci.Limits{})
		if err == nil {
			_, err = oci.PackageYAML(t.Context(), a, m, oci.Limits{})
		}
		if err != nil && !errcode.Known(err) {
			t.Fatalf("%v", err)
		}
	})
}
