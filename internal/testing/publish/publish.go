// Package publish puts packages into the registries of tests.
package publish

import (
	"testing"

	"github.com/xpkg-dev/xpkg/internal/oci"
)

// Stream builds a package of a package.yaml, pushes it, and gives its reference.
func Stream(t testing.TB, registry, repository, tag string, stream []byte) oci.Reference {
	t.Helper()
	image, err := oci.BuildImage(t.Context(), oci.ImageInput{PackageYAML: stream})
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
