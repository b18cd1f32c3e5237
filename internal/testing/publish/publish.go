// Package publish puts packages into the registries of tests.
package publish

import (
	"path/filepath"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/testing/scratch"
)

// Stream builds a package of a package.yaml, pushes it, and gives its reference.
func Stream(t testing.TB, registry, repository, tag string, stream []byte) oci.Reference {
	t.Helper()
	return push(t, registry, repository, tag, oci.ImageInput{PackageYAML: stream})
}

// Program is like Stream, of a package whose image has an executable, which runs with
// arguments.
func Program(t testing.TB, registry, repository, tag string, stream, executable []byte, args ...string) oci.Reference {
	t.Helper()
	image, err := scratch.Image("program", executable, args...)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program.tar")
	if err := scratch.Save(path, "program", image); err != nil {
		t.Fatal(err)
	}
	saved, err := oci.OpenArchive(t.Context(), path, oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close() //nolint:errcheck // Nothing is written to it.
	base, err := oci.LoadImage(t.Context(), saved, oci.Platform{}, oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return push(t, registry, repository, tag, oci.ImageInput{PackageYAML: stream, Base: base})
}

func push(t testing.TB, registry, repository, tag string, in oci.ImageInput) oci.Reference {
	t.Helper()
	image, err := oci.BuildImage(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := oci.ParseReference(registry+"/"+repository+":"+tag, oci.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	remote := oci.NewRemote(oci.RemoteOptions{})
	defer remote.Close()
	if _, err := remote.Push(t.Context(), ref, image); err != nil {
		t.Fatal(err)
	}
	return ref
}
