package registry

import (
	"net/http"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/tokens"
)

// credentials is the result of checking the credentials of a request.
type credentials int

const (
	noCredentials credentials = iota
	validCredentials
	wrongCredentials
)

// Identifier identifies the senders of requests.
type Identifier struct {
	tokens *tokens.Store
	bearer *bearerTokens
	policy func() *access.Policy
}

// Subject returns the subject of a request. Wrong credentials are an anonymous subject for the caller that ignores the second
// result, and never more.
func (i *Identifier) subject(r *http.Request) (access.Subject, credentials) {
	if _, password, ok := r.BasicAuth(); ok {
		// Clients without credentials send an empty password; skopeo does.
		return i.subjectOf(password)
	}
	header := r.Header.Get("Authorization")
	scheme, secret, _ := strings.Cut(header, " ")
	switch {
	case header == "":
		return access.Anonymous(), noCredentials
	case !strings.EqualFold(scheme, "Bearer"):
		return access.Anonymous(), wrongCredentials
	}
	if s, ok := i.bearer.verify(secret, i.tokens.Valid, i.policy()); ok {
		return s, validCredentials
	}
	return i.subjectOf(secret)
}

// subjectOf returns the subject of a token of the store, or of a bearer token that an exchange has returned.
func (i *Identifier) subjectOf(secret string) (access.Subject, credentials) {
	if secret == "" {
		return access.Anonymous(), noCredentials
	}
	if t, ok, err := i.tokens.Lookup(secret); err == nil && ok {
		return t.Subject(), validCredentials
	}
	if s, ok := i.bearer.verify(secret, i.tokens.Valid, i.policy()); ok {
		return s, validCredentials
	}
	return access.Anonymous(), wrongCredentials
}

// tokenHash returns the hash of the token of the store with which a request authenticates, and "" for other credentials.
func (i *Identifier) tokenHash(r *http.Request) string {
	_, password, ok := r.BasicAuth()
	if !ok {
		_, password, _ = strings.Cut(r.Header.Get("Authorization"), " ")
	}
	if t, ok, err := i.tokens.Lookup(password); err == nil && ok {
		return t.Hash
	}
	return ""
}
