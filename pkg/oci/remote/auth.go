package remote

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrUnauthorized is the code for missing or rejected credentials.
var ErrUnauthorized = errcode.Code{
	Name: "Unauthorized", Class: errcode.Unauthorized,
	Cause: "A registry requires credentials, or rejects the given ones. Many registries respond in the same way for a repository that does not exist.",
	Fix:   "Check the repository's name, and log in with `xpkg login`. A manager in a cluster needs a pull secret with read access to the package.",
}

// denied returns the error for a call that a registry or its token server does not allow, with advice for the action
// of the call.
func (s *session) denied(c call, why error, format string, args ...any) *errcode.Error {
	return ErrUnauthorized.New(why, format, args...).WithDo("%s", s.adviceFor(c, why))
}

// adviceFor returns the advice for a call that is not allowed. It depends on the action, and on whether credentials
// were sent. If the registry has named the command that logs in, with flags that the client does not know, the advice
// contains no other one.
func (s *session) adviceFor(c call, why error) string {
	with := fmt.Sprintf(" with `xpkg login %s`", s.host)
	if why != nil && strings.Contains(why.Error(), "`xpkg login "+s.host+" ") {
		with = ""
	}
	as := map[string]string{
		pullActions:   "with read access to " + c.repository,
		pushActions:   "who may push to " + c.repository,
		deleteActions: "who may delete in " + c.repository,
	}[c.actions]
	advice := fmt.Sprintf("Check the repository's name, and log in%s as a user %s.", with, as)
	switch c.actions {
	case "", catalogActions:
		advice = fmt.Sprintf("Log in%s.", with)
	case pullActions:
		advice += " A manager in a cluster needs a pull secret with read access to the package."
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.sent[c.scope()] {
		return "No credentials were sent. " + advice
	}
	return advice
}

// errNoChallenge reports a 401 without a supported challenge.
var errNoChallenge = errors.New("no challenge")

// maxToken bounds the response of a token server.
const maxToken = 1 << 20

// accepted is an Authorization header that a registry has accepted, and the credentials that it was made of.
type accepted struct {
	authorization string
	creds         authn.AuthConfig
}

// token returns the last successful Authorization header for a scope.
func (s *session) token(scope string) accepted {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens[scope]
}

// isOutdated reports whether the keychain no longer has the credentials of a header that the registry has accepted for
// a call: it replaces those that expire.
func (s *session) isOutdated(ctx context.Context, c call, kept accepted) bool {
	if kept.creds == (authn.AuthConfig{}) {
		return false
	}
	for creds, err := range s.candidates(ctx, c, true) {
		if err == nil && creds == kept.creds {
			return false
		}
	}
	return true
}

// challenged repeats a request that the host has challenged, with one credential after another until the host accepts
// one. Without any, and for a host other than the registry, it uses anonymous tokens. It returns the last response if
// none is accepted, or the error of a token server if there is none.
func (s *session) challenged(req *http.Request, resp *http.Response) (*http.Response, error) {
	ctx, c, home := req.Context(), callOf(req), s.isHome(req.URL)
	challenges := supportedChallenges(resp)
	if len(challenges) == 0 && home {
		challenges = s.rootChallenges(ctx, c)
	}
	var failed, unread error
	var advice []string // For the credentials that cannot be read.
	var last accepted
	sent := false
	for creds, err := range s.candidates(ctx, c, home) {
		if err != nil {
			unread = errors.Join(unread, ErrUnauthorized.New(err, "cannot get the credentials for registry %s", s.host))
			if errcode.Known(err) {
				advice = append(advice, errcode.From(err).Do)
			}
			continue
		}
		sent = sent || creds != authn.AuthConfig{}
		authorization, err := s.authorize(ctx, challenges, c, creds, home, sent)
		switch {
		case errors.Is(err, errNoChallenge):
			continue
		case err != nil && !errors.Is(err, ErrUnauthorized):
			return nil, closing(resp, err)
		case err != nil:
			failed = cmp.Or(failed, err)
			continue
		}
		drain(resp)
		if req, err = withBody(req); err != nil {
			return nil, err
		}
		if resp, err = s.send(req, authorization); err != nil {
			return nil, err
		}
		last = accepted{authorization, creds}
		if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			s.keep(c, last, home)
			return resp, nil
		}
	}
	switch {
	case unread != nil:
		denied := s.denied(
			c, errors.Join(registryWords(resp), unread), "cannot %s: registry %s denies access", c.what, s.host,
		)
		return nil, closing(resp, denied.WithDo("%s", strings.Join(append(advice, denied.Do), " ")))
	case failed != nil && last.authorization == "":
		return nil, closing(resp, failed)
	case resp.StatusCode == http.StatusForbidden:
		s.keep(c, last, home)
	}
	return resp, nil
}

// closing closes a response that is not returned because of an error.
func closing(resp *http.Response, err error) error {
	drain(resp)
	return err
}

// candidates returns the credentials for the challenge of a host, each once, and anonymous ones if there are none.
func (s *session) candidates(ctx context.Context, c call, home bool) iter.Seq2[authn.AuthConfig, error] {
	return func(yield func(authn.AuthConfig, error) bool) {
		var tried []authn.AuthConfig
		if home {
			for creds, err := range candidatesOf(ctx, s.opts.Keychain, keychainEntry{s.host, c.repository}) {
				if err == nil {
					if slices.Contains(tried, creds) {
						continue
					}
					tried = append(tried, creds)
				}
				if !yield(creds, err) {
					return
				}
			}
		}
		if len(tried) == 0 {
			yield(authn.AuthConfig{}, nil)
		}
	}
}

// authorize returns the Authorization header for challenges. A host other than the registry gets no credentials, only
// an anonymous token. Sent reports whether any credentials were sent for the challenges, including these.
func (s *session) authorize(
	ctx context.Context, challenges []challenge, c call, creds authn.AuthConfig, home, sent bool,
) (string, error) {
	// The error of a token server states whether it got credentials.
	had := home && s.recordSent(c, sent)
	authorization, err := s.answer(ctx, challenges, c, &creds)
	if home && errors.Is(err, errNoChallenge) {
		s.recordSent(c, had)
	}
	return authorization, err
}

// keep keeps the Authorization header that the registry itself has accepted for the next calls of the same scope.
func (s *session) keep(c call, header accepted, home bool) {
	if !home {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[c.scope()] = header
}

// rootChallenges returns the challenges for the root of the registry's API: several registries send none elsewhere.
func (s *session) rootChallenges(ctx context.Context, c call) []challenge {
	req, err := s.request(ctx, call{method: http.MethodGet, url: s.url("/v2/"), what: c.what})
	if err != nil {
		return nil
	}
	resp, err := s.send(req, "")
	if err != nil {
		return nil
	}
	defer drain(resp)
	return supportedChallenges(resp)
}

// recordSent records whether credentials are sent with the calls of the scope of c, and returns what was recorded
// before.
func (s *session) recordSent(c call, sent bool) (before bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.sent[c.scope()] = s.sent[c.scope()], sent
	return before
}

// sendFirst makes the calls of the scope of c send a user name and a password before a challenge, if there are any
// and no credentials were accepted yet.
func (s *session) sendFirst(ctx context.Context, c call) {
	for creds, err := range s.candidates(ctx, c, true) {
		if err != nil {
			continue
		}
		if creds.Username != "" || creds.Password != "" {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.tokens[c.scope()].authorization == "" {
				s.tokens[c.scope()], s.sent[c.scope()] = accepted{basic(&creds), creds}, true
			}
		}
		return
	}
}

// answer returns the Authorization header for the first challenge that can be met.
func (s *session) answer(ctx context.Context, challenges []challenge, c call, creds *authn.AuthConfig) (string, error) {
	failed := errNoChallenge
	for _, ch := range challenges {
		authorization, err := s.meet(ctx, ch, c, creds)
		if err == nil {
			return authorization, nil
		}
		if errors.Is(failed, errNoChallenge) {
			failed = err
		}
	}
	return "", failed
}

// meet returns the Authorization header for a supported challenge.
func (s *session) meet(ctx context.Context, ch challenge, c call, creds *authn.AuthConfig) (string, error) {
	switch {
	case ch.scheme == bearerScheme && creds.RegistryToken != "":
		return "Bearer " + creds.RegistryToken, nil
	case ch.scheme == bearerScheme:
		token, err := s.fetchToken(ctx, ch, c, creds)
		return "Bearer " + token, err
	case creds.Username != "" || creds.Password != "":
		return basic(creds), nil
	}
	return "", errNoChallenge
}

// keychainEntry is the [authn.Resource] for a lookup in the keychain.
type keychainEntry struct{ host, repository string }

// String returns the host, followed by the repository if there is one.
func (k keychainEntry) String() string {
	if k.repository == "" {
		return k.host
	}
	return k.host + "/" + k.repository
}

// RegistryStr returns the host.
func (k keychainEntry) RegistryStr() string { return k.host }

// fetchToken requests a token for the scope of the call from the token server of a
// challenge. It ignores the scope in the challenge: a registry must not obtain a token
// for anything else.
func (s *session) fetchToken(ctx context.Context, ch challenge, c call, creds *authn.AuthConfig) (string, error) {
	realm, err := url.Parse(ch.params["realm"])
	if err != nil || realm.Host == "" {
		return "", ErrUnauthorized.New(nil, "cannot %s: registry %s does not name a token server", c.what, s.host)
	}
	realm = s.homeURL(realm)
	if err := s.tokensThrottled(realm, c); err != nil {
		return "", err
	}
	req, err := tokenRequest(ctx, realm, ch.params["service"], c.scope(), creds)
	if err != nil {
		return "", err
	}
	transport, err := s.transportFor(realm)
	if err != nil {
		return "", err
	}
	ctx, cancel := s.deadline(ctx, 0)
	defer cancel()
	req.Header.Set("User-Agent", s.opts.UserAgent)
	resp, err := s.roundTrip(transport, req.WithContext(ctx), "get a token from "+realm.Host)
	if err != nil {
		return "", s.networkError(ctx, err, fmt.Sprintf("get a token from %s", realm.Host))
	}
	defer drain(resp)
	if !isSuccess(resp.StatusCode) {
		return "", s.tokenError(resp, realm, c)
	}
	return s.readToken(resp, realm, c)
}

// tokenRequest returns a token request: a GET, or a POST with a refresh token (CNCF
// distribution, "Token Authentication").
func tokenRequest(
	ctx context.Context, realm *url.URL, service, scope string, creds *authn.AuthConfig,
) (*http.Request, error) {
	params := url.Values{}
	if service != "" {
		params.Set("service", service)
	}
	if scope != "" {
		params.Set("scope", scope)
	}
	target := *realm
	if creds.IdentityToken != "" {
		params.Set("grant_type", "refresh_token")
		params.Set("refresh_token", creds.IdentityToken)
		params.Set("client_id", "xpkg")
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), strings.NewReader(params.Encode()))
		if err == nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		return req, err
	}
	query := target.Query()
	for k, v := range params {
		query[k] = v
	}
	if scopes := strings.Fields(scope); len(scopes) > 1 { // Only the other form has one value for all.
		query["scope"] = scopes
	}
	target.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err == nil && (creds.Username != "" || creds.Password != "") {
		req.Header.Set("Authorization", basic(creds))
	}
	return req, err
}

func (s *session) readToken(resp *http.Response, realm *url.URL, c call) (string, error) {
	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxToken))
	if err == nil {
		err = json.Unmarshal(data, &answer)
	}
	token := answer.Token
	if token == "" {
		token = answer.AccessToken
	}
	// The error must not include the content, which can contain a secret.
	if err != nil || token == "" || strings.ContainsAny(token, "\r\n") {
		return "", s.denied(c, nil, "cannot %s: token server %s returned no token", c.what, realm.Host)
	}
	return token, nil
}

func (s *session) tokenError(resp *http.Response, realm *url.URL, c call) error {
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		s.tokensPause.start(s.opts.Now(), retryAfter(resp, s.opts.Now()))
		if err := s.tokensThrottled(realm, c); err != nil {
			return err
		}
		return ErrThrottled.New(nil, "cannot %s: token server %s is throttled", c.what, realm.Host).
			WithDo(throttledWithoutTime)
	case resp.StatusCode >= http.StatusInternalServerError:
		return ErrRegistryUnavailable.New(
			nil, "cannot %s: token server %s responded with %d", c.what, realm.Host, resp.StatusCode,
		)
	}
	return s.denied(
		c, errors.Join(registryWords(resp), s.skew(resp)), "cannot %s: token server %s responded with %d", c.what, realm.Host,
		resp.StatusCode,
	)
}

// tokensThrottled returns an error while the token server's Retry-After is in the future.
func (s *session) tokensThrottled(realm *url.URL, c call) error {
	if err := s.tokensPause.err(s.opts.Now()); err != nil {
		return ErrThrottled.New(err, "cannot %s: token server %s is throttled", c.what, realm.Host)
	}
	return nil
}

func basic(creds *authn.AuthConfig) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(creds.Username+":"+creds.Password))
}
