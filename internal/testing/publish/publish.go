// Package publish pushes packages to the registries of tests.
package publish

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/scratch"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// Stream builds a package from a package.yaml, pushes it, and returns its reference.
func Stream(t testing.TB, registry, repository, tag string, stream []byte) oci.Reference {
	t.Helper()
	return push(t, registry, repository, tag, image.Input{PackageYAML: stream})
}

// ReadFirstGeneration returns the package of the first generation in a folder, and its files below .registry.
func ReadFirstGeneration(t testing.TB, folder string) (*firstgen.Package, map[string][]byte) {
	t.Helper()
	fsys := os.DirFS(folder)
	at, err := firstgen.Find(fsys)
	if err != nil {
		t.Fatal(err)
	}
	files, err := firstgen.Files(fsys, at, firstgen.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := firstgen.ReadFiles(files, firstgen.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return pkg, files
}

// FirstGeneration builds a package of the first generation from its files below .registry, pushes it, and returns its
// reference and its digest.
func FirstGeneration(t testing.TB, registry, repository, tag string, files map[string][]byte) (string, oci.Digest) {
	t.Helper()
	in := image.Input{}
	for name, data := range files {
		in.Registry = append(in.Registry, image.File{Path: name, Data: data})
	}
	ref, digest, err := pushInput(t.Context(), registry+"/"+repository+":"+tag, in)
	if err != nil {
		t.Fatal(err)
	}
	return ref.String(), digest
}

// Program is like [Stream] for a package whose image runs an executable with the given
// arguments.
func Program(t testing.TB, registry, repository, tag string, stream, executable []byte, args ...string) oci.Reference {
	t.Helper()
	img, err := scratch.Image("program", executable, args...)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program.tar")
	if err := scratch.Save(path, "program", img); err != nil {
		t.Fatal(err)
	}
	saved, err := archive.Open(t.Context(), path, oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	base, err := image.Load(t.Context(), saved, oci.Platform{}, oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return push(t, registry, repository, tag, image.Input{PackageYAML: stream, Base: base})
}

func push(t testing.TB, registry, repository, tag string, in image.Input) oci.Reference {
	t.Helper()
	ref, _, err := pushInput(t.Context(), registry+"/"+repository+":"+tag, in)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// Package builds a package from a package.yaml, pushes it to a reference, and returns its digest.
func Package(ctx context.Context, reference string, stream []byte) (oci.Digest, error) {
	_, digest, err := pushInput(ctx, reference, image.Input{PackageYAML: stream})
	return digest, err
}

func pushInput(ctx context.Context, reference string, in image.Input) (oci.Reference, oci.Digest, error) {
	built, err := image.Build(ctx, in)
	if err != nil {
		return oci.Reference{}, oci.Digest{}, err
	}
	ref, err := oci.ParseReference(reference, oci.ParseOptions{})
	if err != nil {
		return oci.Reference{}, oci.Digest{}, err
	}
	client := remote.New(remote.Options{})
	defer client.Close()
	digest, err := client.Push(ctx, ref, built)
	return ref, digest, err
}
