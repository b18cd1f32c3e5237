package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/xpkg-dev/xpkg/internal/keyedmutex"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/limit"
	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/internal/wording"
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
	// discoveryLife is the time after which the discovery document of an issuer is read again.
	discoveryLife = time.Hour
	// refusalPause is the time after a logged refusal of a token in which no other one of its issuer is logged, because
	// any client can send tokens.
	refusalPause = 10 * time.Second
	// longestCause is the maximum length of a logged cause in bytes. It can contain claims of a token that is not
	// verified.
	longestCause = 500
	// shortestKey is the least size of the RSA key of an issuer in bits.
	shortestKey = 2048
)

// issuers verifies the tokens of OIDC issuers. It reads the discovery document of an issuer when its first token
// arrives.
type issuers struct {
	client *http.Client
	now    func() time.Time
	log    *slog.Logger

	// discovering is by issuer, so that one that does not respond delays the tokens of no other.
	discovering keyedmutex.Mutex[string]
	mu          sync.Mutex
	providers   map[string]discovery
	// failures are the times at which the discovery of issuers failed.
	failures map[string]time.Time
	// refusals are the times of the last logged refusals, by issuer.
	refusals map[string]time.Time
}

// discovery is an issuer with the time at which its discovery document was read; the zero value is one whose document
// was not read.
type discovery struct {
	provider *oidc.Provider
	read     time.Time
}

// document returns the discovery document.
func (d discovery) document() string {
	var document json.RawMessage
	if d.provider == nil || d.provider.Claims(&document) != nil {
		return ""
	}
	return string(document)
}

// newIssuers returns issuers whose documents a client reads.
func newIssuers(client *http.Client, now func() time.Time, log *slog.Logger) *issuers {
	limited := *client
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	limited.Transport = &issuerDocuments{next: next, now: now, log: log, documents: map[string]issuerDocument{}}
	return &issuers{
		client: &limited, now: now, log: log, providers: map[string]discovery{}, failures: map[string]time.Time{},
		refusals: map[string]time.Time{},
	}
}

// serveExchange exchanges the token of an OIDC issuer, the field "token" of a JSON object, for a bearer token: for 15
// minutes and one repository for a CI identity, for 8 hours for a user.
func (s *Server) serveExchange(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		protocol.WriteError(w, r, http.StatusMethodNotAllowed, protocol.CodeUnsupported, "exchange a token with POST")
		return
	}
	limit.Body(r, manifestTime)
	var body struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, largestExchange)).Decode(&body); err != nil ||
		body.Token == "" {
		protocol.WriteError(
			w, r, http.StatusBadRequest, protocol.CodeUnsupported, `the body must be a JSON object with the field "token"`,
		)
		return
	}
	subject, err := s.issuers.verify(r.Context(), s.policy(), body.Token)
	switch {
	case errors.Is(err, errIssuer):
		protocol.WriteError(
			w, r, http.StatusServiceUnavailable, protocol.CodeUnknown,
			"the issuer of the token cannot be reached, or its documents are not valid; the log of the server has the cause",
		)
		return
	case err != nil:
		protocol.WriteError(
			w, r, http.StatusUnauthorized, protocol.CodeUnauthorized,
			"no issuer and identity of the configuration matches the token, or it has expired; the log of the server has the cause",
		)
		return
	}
	life := loginLife
	if len(subject.Grants) > 0 {
		life = grantLife
	}
	bearer, life, err := s.identifier.bearer.issue(login{subject: subject}, life)
	switch {
	case errors.Is(err, errTooManyGroups):
		protocol.WriteError(w, r, http.StatusBadRequest, protocol.CodeUnsupported, err.Error())
		return
	case err != nil:
		s.log.Error("cannot issue a bearer token", "error", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	protocol.WriteJSON(w, r, http.StatusOK, map[string]any{"token": bearer, "expires_in": int(life / time.Second)})
}

// errIssuer is the error for a token whose issuer cannot be asked for its keys, and errToken that for a token that is
// not valid or has no identity in the policy.
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
	var causes []error
	for _, issuer := range policy.Issuers {
		if issuer.URL != claimed {
			continue
		}
		subject, err := i.verifyAs(ctx, issuer, token)
		if err == nil || errors.Is(err, errIssuer) {
			return subject, err
		}
		causes = append(causes, err)
	}
	if unavailable.Load() || ctx.Err() != nil { // The time can end while others wait for the same document.
		i.expire(claimed)
		return access.Subject{}, errIssuer
	}
	i.logRefusal(claimed, causes)
	return access.Subject{}, errToken
}

// verifyAs returns the subject of a token of one entry of the configuration. It fails with errIssuer, or with the cause
// of a refusal.
func (i *issuers) verifyAs(ctx context.Context, issuer access.Issuer, token string) (access.Subject, error) {
	provider, err := i.provider(ctx, issuer.URL)
	if err != nil {
		return access.Subject{}, errIssuer
	}
	verified, err := provider.VerifierContext(ctx, &oidc.Config{ClientID: issuer.Audience, Now: i.now}).Verify(ctx, token)
	if err != nil {
		return access.Subject{}, err
	}
	if bits := rsaBits(token); bits > 0 && bits < shortestKey {
		return access.Subject{}, fmt.Errorf("the RSA key of the issuer has %d bits, and the least is %d", bits, shortestKey)
	}
	var claims map[string]any
	if err := verified.Claims(&claims); err != nil {
		return access.Subject{}, err
	}
	if subject, ok := issuer.Subject(claims); ok {
		return subject, nil
	}
	return access.Subject{}, fmt.Errorf("the configuration has no identity for its claims: %s", issuer.Relevant(claims))
}

// logRefusal logs why a token is refused. The causes are those of the entries of the configuration with its issuer.
func (i *issuers) logRefusal(issuer string, causes []error) {
	key := issuer
	if len(causes) == 0 {
		key, causes = "", []error{errors.New("the configuration has no such issuer")}
	}
	now := i.now()
	i.mu.Lock()
	last, logged := i.refusals[key]
	isLate := !logged || now.Sub(last) >= refusalPause
	if isLate {
		i.refusals[key] = now
	}
	i.mu.Unlock()
	if isLate {
		i.log.Warn(
			"a token of an issuer is refused", "issuer", wording.Clip(issuer, longestCause), "error",
			wording.Clip(errors.Join(causes...).Error(), longestCause),
		)
	}
}

// provider returns the keys and the endpoints of an issuer. The discovery document of an issuer is read once in a
// while, also if the client of the server has gone. If it cannot be read again, the last one applies.
func (i *issuers) provider(ctx context.Context, url string) (*oidc.Provider, error) {
	unlock, err := i.discovering.Lock(ctx, url)
	if err != nil {
		return nil, err
	}
	defer unlock()
	known, isCurrent := i.discovered(url)
	if isCurrent {
		if known.provider == nil {
			return nil, errIssuer
		}
		return known.provider, nil
	}
	next := discovery{}
	next.provider, err = oidc.NewProvider(context.WithoutCancel(ctx), url)
	i.mu.Lock()
	defer i.mu.Unlock()
	next.read = i.now()
	if err != nil {
		i.log.Warn("an issuer of the configuration cannot be used", "issuer", url, "error", err)
		i.failures[url] = next.read
		if known.provider == nil {
			return nil, err
		}
		return known.provider, nil
	}
	if known.document() == next.document() {
		next.provider = known.provider // It has the keys.
	}
	i.providers[url] = next
	return next.provider, nil
}

// discovered returns what is known of an issuer, and whether its discovery document need not be read now: it was read,
// or it could not be read, a short time ago.
func (i *issuers) discovered(url string) (known discovery, isCurrent bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	known = i.providers[url]
	failed, ok := i.failures[url]
	return known, ok && now.Sub(failed) < issuerPause || known.provider != nil && now.Sub(known.read) < discoveryLife
}

// expire makes the next token of an issuer read its discovery document again, which can name another address of the
// keys now.
func (i *issuers) expire(url string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if known, ok := i.providers[url]; ok {
		known.read = time.Time{}
		i.providers[url] = known
	}
}

// rsaBits returns the size of the RSA key that signed a token, which is the size of the signature; 0 for other keys.
func rsaBits(token string) int {
	encodedHeader, rest, _ := strings.Cut(token, ".")
	_, encodedSignature, _ := strings.Cut(rest, ".")
	var header struct {
		Algorithm string `json:"alg"`
	}
	text, err := base64.RawURLEncoding.DecodeString(encodedHeader)
	if err != nil || json.Unmarshal(text, &header) != nil ||
		!strings.HasPrefix(header.Algorithm, "RS") && !strings.HasPrefix(header.Algorithm, "PS") {
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
