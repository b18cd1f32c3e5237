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
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

const helloYAML = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: my-cool-pkg\n"

// The whole way of spec.package: mycoolpkg with packagePullPolicy Never, for a file
// that is copied into the cache, by this manager and by the next: no network.
func TestPullPolicyNeverReadsFromTheCache(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	img, err := image.Build(ctx, image.Input{PackageYAML: []byte(helloYAML)})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := archive.Write(ctx, &file, img, archive.WriteOptions{}, oci.Limits{}); err != nil {
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
		source := fetch.NewSource(fetch.Options{Store: c.Store(), Names: c, Remote: remote.Options{
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
		pkg, err := source.Read(ctx, fetch.Plain(ref), d, false)
		if err != nil || pkg.Meta.Name != "my-cool-pkg" {
			t.Errorf("got %+v (%v)", pkg, err)
		}
		source.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
