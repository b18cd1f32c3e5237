package registry_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// benchmarked is a server with a package, to which requests are sent through connections.
type benchmarked struct {
	*server
	url string
}

func startBenchmarked(b *testing.B) benchmarked {
	b.Helper()
	s := start(b, func(o *registry.Options) { o.MaxUpload = 1 << 30 })
	s.mustPush(b, "acme/boats:v1.0.0", "Boat")
	return benchmarked{s, port.Serve(b, s).URL}
}

// request sends a request and reads its response.
func (s benchmarked) request(b *testing.B, method, target string, body io.Reader, want int) *http.Response {
	b.Helper()
	if !strings.HasPrefix(target, "http") {
		target = s.url + strings.TrimPrefix(target, s.url)
	}
	r, err := http.NewRequestWithContext(b.Context(), method, target, body)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.admin)
	r.Header.Set("Accept", string(oci.MediaTypeOCIManifest))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != want {
		b.Fatalf("%s %s: %d, %v", method, target, resp.StatusCode, err)
	}
	return resp
}

// largeBlob is the size of a large layer in bytes.
const largeBlob = 20 << 20

// pushBlob pushes a blob and returns its path.
func (s benchmarked) pushBlob(b *testing.B, content []byte) string {
	b.Helper()
	d := oci.DigestOf(content).String()
	location := s.request(b, http.MethodPost, "/v2/acme/boats/blobs/uploads/", nil, http.StatusAccepted).
		Header.Get("Location")
	s.request(b, http.MethodPut, location+"&digest="+d, bytes.NewReader(content), http.StatusCreated)
	return "/v2/acme/boats/blobs/" + d
}

func BenchmarkPushOfALargeBlob(b *testing.B) {
	s, content := startBenchmarked(b), make([]byte, largeBlob)
	b.SetBytes(largeBlob)
	b.ReportAllocs()
	for i := uint64(0); b.Loop(); i++ {
		binary.LittleEndian.PutUint64(content, i)
		s.pushBlob(b, content)
	}
}

func BenchmarkPullOfALargeBlob(b *testing.B) {
	s := startBenchmarked(b)
	path := s.pushBlob(b, make([]byte, largeBlob))
	b.SetBytes(largeBlob)
	b.ReportAllocs()
	for b.Loop() {
		s.request(b, http.MethodGet, path, nil, http.StatusOK)
	}
}

func BenchmarkGetOfAManifest(b *testing.B) {
	s := startBenchmarked(b)
	b.ReportAllocs()
	for b.Loop() {
		s.request(b, http.MethodGet, "/v2/acme/boats/manifests/v1.0.0", nil, http.StatusOK)
	}
}
