package cache_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

const helloYAML = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: my-cool-pkg\n"

// The whole way of spec.package: mycoolpkg with packagePullPolicy Never, for a file
// that is copied into the cache, by this manager and by the next: no network.
func TestNeverReadsFromTheCache(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	img, err := oci.BuildImage(ctx, oci.ImageInput{PackageYAML: []byte(helloYAML)})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := oci.WriteArchive(ctx, &file, img, oci.ArchiveOptions{}, oci.Limits{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mycoolpkg.xpkg"), file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c, err := cache.Open(dir, cache.Options{Limit: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		source := content.NewSource(content.Options{Store: c.Store(), Names: c, Remote: oci.RemoteOptions{
			Dial: func(_ context.Context, _, address string) (net.Conn, error) {
				t.Errorf("%s was dialed", address)
				return nil, errors.New("no network")
			},
		}})
		d, err := source.Named(ctx, "mycoolpkg")
		if err != nil || d != img.Digest() {
			t.Fatalf("got %s (%v), want %s", d, err, img.Digest())
		}
		ref := oci.MustParseReference("registry.example.com/any/thing:v1")
		pkg, err := source.Read(ctx, content.Plain(ref), d, false)
		if err != nil || pkg.Meta.Name != "my-cool-pkg" {
			t.Errorf("got %+v (%v)", pkg, err)
		}
		source.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
