package remote_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// Push a package to an in-memory registry, then resolve its tag, fetch it into a
// store, and read package.yaml.
func Example() {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	if err := pushAndFetch(context.Background(), strings.TrimPrefix(server.URL, "http://")); err != nil {
		fmt.Println(err)
	}
	// Output:
	// same digest: true
	// kind: Configuration
}

func pushAndFetch(ctx context.Context, host string) error {
	img, err := image.Build(ctx, image.Input{PackageYAML: []byte("kind: Configuration\n")})
	if err != nil {
		return err
	}
	client := remote.New(remote.Options{})
	defer client.Close()
	ref, err := oci.ParseReference(host+"/acme/hello:v1.0.0", oci.ParseOptions{})
	if err != nil {
		return err
	}
	pushed, err := client.Push(ctx, ref, img)
	if err != nil {
		return err
	}

	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := store.Open(filepath.Join(dir, "store"), store.Options{})
	if err != nil {
		return err
	}
	defer s.Close()

	resolved, err := client.Resolve(ctx, ref)
	if err != nil {
		return err
	}
	m, err := client.Fetch(ctx, ref.WithDigest(resolved.Digest), s, remote.FetchOptions{})
	if err != nil {
		return err
	}
	data, err := s.PackageYAML(ctx, m, oci.DefaultLimits())
	if err != nil {
		return err
	}
	fmt.Println("same digest:", resolved.Digest == pushed)
	fmt.Print(string(data))
	return nil
}
