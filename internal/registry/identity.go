package registry

import (
	"net/http"
	"strings"
	"time"

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

// login is an identity that can request bearer tokens: that of a token of the store, or of the password that an
// exchange has returned.
type login struct {
	subject access.Subject
	// token is the hash of the token of the store, and empty for a password.
	token string
	// expires is the time until which a password is valid, and zero for a token of the store, which is looked up for each
	// request.
	expires time.Time
}

// subject returns the subject of a request. Wrong credentials are an anonymous subject for the caller that ignores the
// second result, and never more.
func (i *Identifier) subject(r *http.Request) (access.Subject, credentials) {
	if scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		if s, _, ok := i.bearer.verify(secret, i.tokens.Valid, i.policy()); ok {
			return s, validCredentials
		}
	}
	l, found := i.login(r)
	return l.subject, found
}

// login returns the identity of a request for a bearer token. A bearer token is none: it has the scope and the lifetime
// that its client requested, and must not be exchanged for another one.
func (i *Identifier) login(r *http.Request) (login, credentials) {
	if _, password, ok := r.BasicAuth(); ok {
		// Clients without credentials send an empty password; skopeo does.
		return i.loginOf(password)
	}
	header := r.Header.Get("Authorization")
	scheme, secret, _ := strings.Cut(header, " ")
	switch {
	case header == "":
		return login{subject: access.Anonymous()}, noCredentials
	case !strings.EqualFold(scheme, "Bearer"):
		return login{subject: access.Anonymous()}, wrongCredentials
	}
	return i.loginOf(secret)
}

// loginOf returns the identity of a token of the store, or of the password that an exchange has returned.
func (i *Identifier) loginOf(secret string) (login, credentials) {
	if secret == "" {
		return login{subject: access.Anonymous()}, noCredentials
	}
	if t, ok, err := i.tokens.Lookup(secret); err == nil && ok {
		return login{subject: t.Subject(), token: t.Hash}, validCredentials
	}
	if s, expires, ok := i.bearer.verify(secret, i.tokens.Valid, i.policy()); ok && s.Requested == nil {
		return login{subject: s, expires: expires}, validCredentials
	}
	return login{subject: access.Anonymous()}, wrongCredentials
}
