package location

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
)

// TestImagesOfALayout proves that a tag or a digest selects one image of a layout, and that the
// error lists the images of a layout with several when none is selected.
func TestImagesOfALayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layout")
	var entries []oci.Descriptor
	digests := map[string]oci.Digest{}
	for _, name := range []string{"one:v1", "two:v2"} {
		img, err := image.Build(t.Context(), image.Input{PackageYAML: []byte("kind: " + name + "\n")})
		if err != nil {
			t.Fatal(err)
		}
		one := t.TempDir()
		if _, err := oci.Copy(t.Context(), archive.ToLayout(one, name, oci.Limits{}), img); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(dir, os.DirFS(one)); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "index.json")); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "oci-layout")); err != nil {
			t.Fatal(err)
		}
		entry := img.Root()
		entry.Annotations = map[string]string{"org.opencontainers.image.ref.name": "registry.example.com/" + name}
		entries = append(entries, entry)
		digests[name] = img.Digest()
	}
	index, err := json.Marshal(oci.Document{SchemaVersion: 2, MediaType: oci.MediaTypeOCIIndex, Manifests: entries})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"index.json": index, "oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open := func(s string) (oci.Digest, error) {
		l, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		a, err := OpenPath(&terminal.Env{Context: t.Context()}, l, 1<<20, oci.Limits{})
		if err != nil {
			return oci.Digest{}, err
		}
		return a.Digest(), a.Close()
	}
	for s, want := range map[string]oci.Digest{
		"oci:" + dir + ":v1":                            digests["one:v1"],
		"oci:" + dir + "@" + digests["two:v2"].String(): digests["two:v2"],
	} {
		if got, err := open(s); err != nil || got != want {
			t.Errorf("%s is %s (%v), want %s", s, got, err, want)
		}
	}
	for _, s := range []string{"oci:" + dir, "oci:" + dir + ":v3", dir} {
		_, err := open(s)
		do := errcode.From(err).Do
		for name, d := range digests {
			if !strings.Contains(do, "oci:"+dir+"@"+d.String()) || !strings.Contains(do, name) {
				t.Errorf("%s: %v does not list %s: %s", s, err, name, do)
			}
		}
	}
}
