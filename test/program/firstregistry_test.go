//go:build unix

package program_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1oci "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
)

// firstKey is where a script keeps the registry $FIRST.
type firstKey struct{}

// firstRegistry is the registry $FIRST: a proxy that can change responses.
type firstRegistry struct {
	*httptest.Server

	mu sync.Mutex
	// flips are the changes of the content of responses, by path or by the beginning of a path that ends with a slash.
	flips map[string]func([]byte) []byte
}

// modify changes the content of a response.
func (f *firstRegistry) modify(r *http.Response) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := r.Request.URL.Path
	flip := f.flips[path]
	if flip == nil {
		flip = f.flips[path[:strings.LastIndex(path, "/")+1]]
	}
	if flip == nil || r.StatusCode != http.StatusOK || r.Request.Method != http.MethodGet {
		return nil
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(flip(content)))
	return nil
}

// openFirst starts a registry other than the one of the control plane, which can be closed: $FIRST,
// and $FIRST_NAME as part of a repository.
func openFirst(t testing.TB, e *testscript.Env) error {
	t.Helper()
	target, err := url.Parse("http://" + cluster.Registry(t))
	if err != nil {
		return err
	}
	first := &firstRegistry{flips: map[string]func([]byte) []byte{}}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = first.modify
	first.Server = port.Serve(t, proxy)
	address := strings.TrimPrefix(first.URL, "http://")
	e.Values[firstKey{}] = first
	e.Setenv("FIRST", address)
	e.Setenv("FIRST_NAME", strings.ReplaceAll(address, ":", "-"))
	return nil
}

// closeFirst takes that registry off the network: "closeregistry $FIRST".
func closeFirst(ts *testscript.TestScript, neg bool, args []string) {
	server, ok := ts.Value(firstKey{}).(*firstRegistry)
	if neg || !ok || len(args) != 1 || server.URL != "http://"+args[0] {
		ts.Fatalf("usage: closeregistry $FIRST")
	}
	server.Close()
}

// flip layer|manifest REPOSITORY makes the registry $FIRST change the base layer, or the manifest, of the version
// v1.0.0 of a repository on its way to clients. The registry of the control plane does not serve content that was
// changed on the disk.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	first, ok := ts.Value(firstKey{}).(*firstRegistry)
	if neg || !ok || len(args) != 2 {
		ts.Fatalf("usage: flip layer|manifest REPOSITORY")
	}
	repository := "/v2/" + args[1]
	ref, err := name.ParseReference(ts.Getenv("FIRST") + "/" + args[1] + ":v1.0.0")
	ts.Check(err)
	image, err := remote.Image(ref)
	ts.Check(err)
	manifest, err := image.Manifest()
	ts.Check(err)
	first.mu.Lock()
	defer first.mu.Unlock()
	switch args[0] {
	case "manifest":
		first.flips[repository+"/manifests/"] = func(content []byte) []byte {
			return bytes.Replace(content, []byte(`"base"`), []byte(`"Base"`), 1)
		}
	case "layer":
		at := slices.IndexFunc(
			manifest.Layers, func(d v1oci.Descriptor) bool { return d.Annotations["io.crossplane.xpkg"] == "base" },
		)
		first.flips[repository+"/blobs/"+manifest.Layers[at].Digest.String()] = func(content []byte) []byte {
			content[len(content)-1] ^= 0xff
			return content
		}
	}
}
