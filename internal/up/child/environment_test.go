package child

import (
	"slices"
	"testing"
)

// With a proxy in its environment, the API server would send the requests for webhooks of packages to the proxy.
func TestControlPlaneHasNoProxies(t *testing.T) {
	got := withoutProxies([]string{
		"HOME=/home/me", "HTTPS_PROXY=http://proxy", "https_proxy=http://proxy", "http_proxy=", "ALL_PROXY=x",
		"no_proxy=.svc", "PROXY=mine",
	})
	if want := []string{"HOME=/home/me", "PROXY=mine"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
