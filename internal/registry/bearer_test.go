package registry_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
)

// bearer exchanges a token, or no credentials, for a bearer token with a scope.
func (s *server) bearer(t testing.TB, token, scope string) string {
	t.Helper()
	target := "/token?service=" + host
	if scope != "" {
		target += "&scope=" + url.QueryEscape(scope)
	}
	resp := s.do(t, http.MethodGet, target, token, nil)
	var got struct{ Token string }
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || got.Token == "" {
		t.Fatalf("no bearer token: %d, %v", resp.StatusCode, err)
	}
	return got.Token
}
