package oci

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func testImage(t *testing.T, name string) *Image {
	t.Helper()
	image, err := BuildImage(t.Context(), ImageInput{PackageYAML: []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: " + name + "}\n")})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// unreadable is an artifact of which only documents can be read.
type unreadable struct{ Artifact }

func (u unreadable) Open(ctx context.Context, d Descriptor) (io.ReadCloser, error) {
	if d.MediaType.IsImage() || d.MediaType.IsIndex() {
		return u.Artifact.Open(ctx, d)
	}
	return nil, errors.New("the network is down")
}

func TestCollection(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layout")
	a, b := testImage(t, "a"), testImage(t, "b")
	refs := []Reference{MustParseReference("xpkg.test/x/a:v1"), MustParseReference("xpkg.test/x/b@" + b.Digest().String())}
	c, err := OpenCollection(dir, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Add(t.Context(), refs[0].WithDigest(a.Digest()), a); err != nil {
		t.Fatal(err)
	}

	// It is interrupted, and goes on: what is there is not read again.
	if c, err = OpenCollection(dir, Limits{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Add(t.Context(), refs[1], unreadable{b}); err == nil {
		t.Fatal("what cannot be read was added")
	}
	if err := errors.Join(c.Add(t.Context(), refs[0], unreadable{a}), c.Add(t.Context(), refs[1], b), c.Seal()); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(filepath.Join(dir, indexFile))
	if err != nil {
		t.Fatal(err)
	}

	if c, err = OpenCollection(dir, Limits{}); err != nil {
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
		m, err := FindManifest(t.Context(), kept, Platform{}, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadPackageYAML(t.Context(), kept, m, Limits{}); err != nil {
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
	if _, err := OpenCollection(other, Limits{}); !ErrLayoutExists.Is(err) {
		t.Errorf("%v", err)
	}
	// A layout with an entry that nobody can tell the origin of.
	if _, err := Copy(t.Context(), ToLayout(plain, "v1", Limits{}), testImage(t, "a")); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCollection(plain, Limits{}); !ErrNotAnArchive.Is(err) {
		t.Errorf("%v", err)
	}
}
