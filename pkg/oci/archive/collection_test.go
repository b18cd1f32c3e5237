package archive

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
)

func testImage(t *testing.T, name string) *image.Image {
	t.Helper()
	image, err := image.Build(t.Context(), image.Input{
		PackageYAML: []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: " + name + "}\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// unreadable is an artifact of which only documents can be read.
type unreadable struct{ oci.Artifact }

func (u unreadable) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	if d.MediaType.IsImage() || d.MediaType.IsIndex() {
		return u.Artifact.Open(ctx, d)
	}
	return nil, errors.New("the network is down")
}

func TestCollection(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layout")
	a, b := testImage(t, "a"), testImage(t, "b")
	refs := []oci.Reference{
		oci.MustParseReference("xpkg.test/x/a:v1"), oci.MustParseReference("xpkg.test/x/b@" + b.Digest().String()),
	}
	c, err := OpenCollection(dir, oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Add(t.Context(), refs[0].WithDigest(a.Digest()), a); err != nil {
		t.Fatal(err)
	}

	// An interrupted collection resumes without reading existing content again.
	if c, err = OpenCollection(dir, oci.Limits{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Add(t.Context(), refs[1], unreadable{b}); err == nil {
		t.Fatal("what cannot be read was added")
	}
	if err := errors.Join(
		c.Add(t.Context(), refs[0], unreadable{a}), c.Add(t.Context(), refs[1], b), c.Seal(),
	); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(filepath.Join(dir, indexFile))
	if err != nil {
		t.Fatal(err)
	}

	if c, err = OpenCollection(dir, oci.Limits{}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, ref := range c.References() {
		names = append(names, ref.String())
		kept, err := c.Artifact(ref)
		if err != nil {
			t.Fatal(err)
		}
		if kept.Root().Digest != ref.Digest || kept.Root().Annotations != nil {
			t.Errorf("%s is %+v", ref, kept.Root())
		}
		m, err := oci.FindManifest(t.Context(), kept, oci.Platform{}, oci.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := oci.PackageYAML(t.Context(), kept, m, oci.Limits{}); err != nil {
			t.Error(err)
		}
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
	}
	want := []string{refs[0].WithDigest(a.Digest()).String(), refs[1].String()}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if err := c.Seal(); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(filepath.Join(dir, indexFile)); err != nil || string(again) != string(first) {
		t.Errorf("%s\nand again\n%s", first, again)
	}
}

func TestCollectionRefuses(t *testing.T) {
	other, plain := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCollection(other, oci.Limits{}); !errors.Is(err, ErrLayoutExists) {
		t.Errorf("%v", err)
	}
	// A layout with an entry of unknown origin.
	if _, err := oci.Copy(t.Context(), ToLayout(plain, "v1", oci.Limits{}), testImage(t, "a")); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCollection(plain, oci.Limits{}); !errors.Is(err, ErrNotAnArchive) {
		t.Errorf("%v", err)
	}
}
