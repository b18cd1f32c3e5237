package registry_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/testing/dockerregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// TestNumberOfTags serves lists of tags for every number of them that a client can ask for.
func TestNumberOfTags(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, tag := range []string{"v1.0.0", "v1.1.0"} {
		s.mustPush(t, "acme/boats:"+tag, tag)
	}
	for n, want := range map[string]string{
		"0": `"tags":[]`, "1": `"tags":["v1.0.0"]`, "2": `"tags":["v1.0.0","v1.1.0"]`, "3": `"tags":["v1.0.0","v1.1.0"]`,
		"":   `"tags":["v1.0.0","v1.1.0"]`,
		"-1": "PAGINATION_NUMBER_INVALID", "x": "PAGINATION_NUMBER_INVALID",
		"99999999999999999999": "PAGINATION_NUMBER_INVALID",
	} {
		status, body := s.get(t, "/v2/acme/boats/tags/list?n="+n)
		if isOK := strings.Contains(want, "tags"); !strings.Contains(body, want) || isOK != (status == http.StatusOK) ||
			!isOK != (status == http.StatusBadRequest) {
			t.Errorf("n=%s: %d %s", n, status, body)
		}
	}
}

// TestRangeOfABackend responds to a range that the content of a backend does not have.
func TestRangeOfABackend(t *testing.T) {
	t.Parallel()
	address := dockerregistry.Start(t)
	s := start(t, func(o *registry.Options) { o.Backend = &registry.BackendOptions{Host: address, PlainHTTP: true} })
	s.mustPush(t, "acme/boats:v1.0.0", "Boat")
	config := build(t, packageYAML("boats", "Boat"))
	m, err := oci.FindManifest(t.Context(), config, oci.Platform{}, oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, port.Serve(t, s).URL+"/v2/acme/boats/blobs/"+
		m.Config.Digest.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.admin)
	r.Header.Set("Range", "bytes=400000-")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("status %d", resp.StatusCode)
	}
}
