package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/xpkg-dev/xpkg/internal/keyedmutex"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
)

const (
	exchangePath = "/api/v1/token"
	// grantLife is the lifetime of the token of a CI identity, and loginLife that of the token of a user.
	grantLife = 15 * time.Minute
	loginLife = 8 * time.Hour
	// largestExchange is the maximum size of an exchange in bytes.
	largestExchange = 64 << 10
	// issuerTime limits the time for which the server waits for an issuer.
	issuerTime = 10 * time.Second
	// issuerPause is the time for which an issuer that did not respond is not asked again.
	issuerPause = 30 * time.Second
	// shortestKey is the least size of the RSA key of an issuer in bits.
	shortestKey = 2048
)

// issuers verifies the tokens of OIDC issuers. It reads the discovery document of an issuer when its first token arrives.
type issuers struct {
	client *http.Client
	now    func() time.Time
	log    *slog.Logger

	// discovering is by issuer, so that one that does not respond delays the tokens of no other.
	discovering keyedmutex.Mutex[string]
	mu          sync.Mutex
	providers   map[string]*oidc.Provider
	// failures are the times at which the discovery of issuers failed.
	failures map[string]time.Time
}

// newIssuers returns issuers whose documents a client reads.
func newIssuers(client *http.Client, now func() time.Time, log *slog.Logger) *issuers {
	limited := *client
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	limited.Transport = &issuerDocuments{next: next, now: now, log: log, documents: map[string]issuerDocument{}}
	return &issuers{client: &limited, now: now, log: log, providers: map[string]*oidc.Provider{}, failures: map[string]time.Time{}}
}

// serveExchange exchanges the token of an OIDC issuer, the field "token" of a JSON object, for a bearer token: for 15 minutes and
// one repository for a CI identity, for 8 hours for a user.
func (s *Server) serveExchange(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		writeError(w, r, http.StatusMethodNotAllowed, codeUnsupported, "exchange a token with POST")
		return
	}
	limitBody(r, manifestTime)
	var body struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, largestExchange)).Decode(&body); err != nil || body.Token == "" {
		writeError(w, r, http.StatusBadRequest, codeUnsupported, `the body must be a JSON object with the field "token"`)
		return
	}
	subject, err := s.issuers.verify(r.Context(), s.policy(), body.Token)
	switch {
	case errors.Is(err, errIssuer):
		writeError(w, r, http.StatusServiceUnavailable, codeUnknown, "the issuer of the token cannot be reached, or its documents are not valid; the log of the server has the cause")
		return
	case err != nil:
		writeError(w, r, http.StatusUnauthorized, codeUnauthorized, "no issuer and identity of the configuration matches the token, or it has expired")
		return
	}
	life := loginLife
	if len(subject.Grants) > 0 {
		life = grantLife
	}
	bearer, life, err := s.identifier.bearer.issue(login{subject: subject}, life)
	switch {
	case errors.Is(err, errTooManyGroups):
		writeError(w, r, http.StatusBadRequest, codeUnsupported, err.Error())
		return
	case err != nil:
		s.log.Error("cannot issue a bearer token", "error", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, r, http.StatusOK, map[string]any{"token": bearer, "expires_in": int(life / time.Second)})
}

// errIssuer is the error for a token whose issuer cannot be asked for its keys, and errToken that for a token that is not valid or has no identity in the
// policy.
var (
	errIssuer = errors.New("the issuer cannot be asked")
	errToken  = errors.New("the token is not valid")
)

// verify returns the subject of a token of an OIDC issuer. It fails with errToken or errIssuer.
func (i *issuers) verify(ctx context.Context, policy *access.Policy, token string) (access.Subject, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, i.client), issuerTime)
	defer cancel()
	ctx, unavailable := withUnavailable(ctx)
	claimed := claimedIssuer(token)
	for _, issuer := range policy.Issuers {
		if issuer.URL != claimed {
			continue
		}
		provider, err := i.provider(ctx, issuer.URL)
		if err != nil {
			return access.Subject{}, errIssuer
		}
		verified, err := provider.VerifierContext(ctx, &oidc.Config{ClientID: issuer.Audience, Now: i.now}).Verify(ctx, token)
		if err != nil {
			continue
		}
		if bits := rsaBits(token); bits > 0 && bits < shortestKey {
			i.log.Warn("a token is refused because the RSA key of its issuer is too short", "issuer", issuer.URL, "bits", bits, "least", shortestKey)
			continue
		}
		var claims map[string]any
		if verified.Claims(&claims) != nil {
			continue
		}
		if subject, ok := issuer.Subject(claims); ok {
			return subject, nil
		}
	}
	if unavailable.Load() || ctx.Err() != nil { // The time can end while others wait for the same document.
		return access.Subject{}, errIssuer
	}
	return access.Subject{}, errToken
}

// provider returns the keys and the endpoints of an issuer. The discovery document of an issuer is read once, also if the client of the server has gone.
func (i *issuers) provider(ctx context.Context, url string) (*oidc.Provider, error) {
	unlock, err := i.discovering.Lock(ctx, url)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if p, err := i.discovered(url); p != nil || err != nil {
		return p, err
	}
	p, err := oidc.NewProvider(context.WithoutCancel(ctx), url)
	i.mu.Lock()
	defer i.mu.Unlock()
	if err != nil {
		i.log.Warn("an issuer of the configuration cannot be used", "issuer", url, "error", err)
		i.failures[url] = i.now()
		return nil, err
	}
	i.providers[url] = p
	return p, nil
}

// discovered returns a known issuer, an error for one whose discovery has just failed, and neither for another one.
func (i *issuers) discovered(url string) (*oidc.Provider, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if failed, ok := i.failures[url]; ok && i.now().Sub(failed) < issuerPause {
		return nil, errIssuer
	}
	return i.providers[url], nil
}

// rsaBits returns the size of the RSA key that signed a token, which is the size of the signature; 0 for other keys.
func rsaBits(token string) int {
	encodedHeader, rest, _ := strings.Cut(token, ".")
	_, encodedSignature, _ := strings.Cut(rest, ".")
	var header struct {
		Algorithm string `json:"alg"`
	}
	text, err := base64.RawURLEncoding.DecodeString(encodedHeader)
	if err != nil || json.Unmarshal(text, &header) != nil || !strings.HasPrefix(header.Algorithm, "RS") && !strings.HasPrefix(header.Algorithm, "PS") {
		return 0
	}
	const byteBits = 8
	return base64.RawURLEncoding.DecodedLen(len(encodedSignature)) * byteBits
}

// claimedIssuer returns the issuer in a token that is not verified yet, so that only that issuer is asked for its keys.
func claimedIssuer(token string) string {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return ""
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	_ = json.Unmarshal(raw, &claims) // Without an issuer, no configured one equals it.
	return claims.Issuer
}
