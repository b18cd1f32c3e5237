package registry_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/tokens"
)

// A push whose token is revoked while the client sends the manifest changes nothing.
func TestARevokedTokenEndsItsPush(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	manifest := s.upload(t, "acme/provider-boats", build(t, packageYAML("provider-boats", "Raft")))
	for name, login := range map[string]func(secret string) string{
		"a token":        func(secret string) string { return secret },
		"a bearer token": func(secret string) string { return s.bearer(t, secret, "repository:acme/provider-boats:pull,push") },
	} {
		token := login(s.token(t, "alice", []string{"acme/*"}, access.Publish))
		body := &revoking{Reader: bytes.NewReader(manifest), revoke: func() {
			store := tokens.Open(s.dir, nil)
			all, err := store.List()
			if err != nil {
				t.Error(err)
			}
			for _, token := range all {
				if token.User == "alice" {
					if err := store.Revoke(token.ID); err != nil {
						t.Error(err)
					}
				}
			}
		}}
		if got := s.do(t, http.MethodPut, "/v2/acme/provider-boats/manifests/v1.1.0", token, body).StatusCode; got != http.StatusUnauthorized {
			t.Errorf("%s: %d, want %d", name, got, http.StatusUnauthorized)
		}
		if got := s.tags(t, "acme/provider-boats"); !slices.Equal(got, []string{"v1.0.0"}) {
			t.Errorf("%s: the tags are %q", name, got)
		}
	}
}

// revoking is a body that calls a function before its first byte is read.
type revoking struct {
	io.Reader
	once   sync.Once
	revoke func()
}

// Read implements [io.Reader].
func (r *revoking) Read(p []byte) (int, error) {
	r.once.Do(r.revoke)
	return r.Reader.Read(p)
}
