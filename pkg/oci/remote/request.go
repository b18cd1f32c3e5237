package remote

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// call is a repeatable request.
type call struct {
	method string
	url    *url.URL
	header http.Header
	// body opens the content to send, and size is its length.
	body func(ctx context.Context) (io.ReadCloser, error)
	size int64
	// repository and actions, such as "pull", are the scope of the token; both are empty
	// for a request without a repository.
	repository, actions string
	// from is a repository that is read, too: a blob is mounted from it.
	from string
	// what names the operation in errors, as in "cannot <what>".
	what string
	// replaceable is true if another call follows a failed one, so that only throttling is waited for.
	replaceable bool
}

// Actions of scopes.
const (
	pullActions   = "pull"
	pushActions   = "pull,push"
	deleteActions = "delete"
	// catalogActions are the actions on the list of repositories of a registry.
	catalogActions = "*"
)

// scope returns the token scopes, separated by a space (CNCF distribution, "Token Scope").
func (c call) scope() string {
	switch {
	case c.repository == "" && c.actions == catalogActions:
		return "registry:catalog:" + catalogActions
	case c.repository == "":
		return ""
	case c.from != "":
		return "repository:" + c.repository + ":" + c.actions + " repository:" + c.from + ":" + pullActions
	}
	return "repository:" + c.repository + ":" + c.actions
}

// request returns the request of a call. Its body is opened with GetBody for each attempt.
// The context carries the call for the steps that need its scope and its name.
func (s *session) request(ctx context.Context, c call) (*http.Request, error) {
	req, err := http.NewRequestWithContext(context.WithValue(ctx, callKey{}, c), c.method, c.url.String(), nil)
	if err != nil {
		return nil, ErrRegistryUnavailable.New(err, "cannot %s", c.what)
	}
	maps.Copy(req.Header, c.header)
	req.Header.Set("User-Agent", s.opts.UserAgent)
	if c.body != nil {
		req.GetBody = func() (io.ReadCloser, error) { return c.body(ctx) }
		req.ContentLength = c.size
	}
	return req, nil
}

type callKey struct{}

// callOf returns the call of a request.
func callOf(req *http.Request) call {
	c, _ := req.Context().Value(callKey{}).(call)
	return c
}

// withBody returns a request with a new body.
func withBody(req *http.Request) (*http.Request, error) {
	if req.GetBody == nil {
		return req, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	out := req.Clone(req.Context())
	out.Body = body
	return out, nil
}

const maxRedirects = 5

// do sends a request, retries transient failures, and returns the response with any
// status. The caller closes the body.
func (s *session) do(ctx context.Context, c call) (*http.Response, error) {
	req, err := s.request(ctx, c)
	if err != nil {
		return nil, err
	}
	resp, err := s.retries.RoundTrip(req)
	var blocked *retryAfterError
	switch {
	case err == nil:
		return resp, nil
	case errors.As(err, &blocked) && !errcode.Known(err):
		return nil, s.throttledUntil(blocked, c.what)
	}
	return nil, s.networkError(ctx, err, c.what)
}

// throttled returns an error while the registry's Retry-After is in the future.
func (s *session) throttled(what string) error {
	if err := s.retries.pause.err(s.opts.Now()); err != nil {
		return s.throttledUntil(err, what)
	}
	return nil
}

func (s *session) throttledUntil(blocked error, what string) error {
	return ErrThrottled.New(blocked, "cannot %s: registry %s is throttled", what, s.host)
}

// roundTripperFunc is an [http.RoundTripper].
type roundTripperFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// follow sends a request and follows redirects. It sends the registry's credentials to
// the registry only.
func (s *session) follow(req *http.Request) (*http.Response, error) {
	what, seen := callOf(req).what, map[string]bool{}
	for {
		resp, err := s.authorized(req)
		if err != nil || !isRedirect(resp, req.Method) {
			return resp, err
		}
		next, err := req.URL.Parse(resp.Header.Get("Location"))
		drain(resp)
		if err != nil || resp.Header.Get("Location") == "" {
			return nil,
				ErrRegistryUnavailable.New(nil, "cannot %s: registry %s sent a redirect without a location", what, s.host)
		}
		next = s.homeURL(next)
		seen[req.URL.String()] = true
		if seen[next.String()] || len(seen) > maxRedirects {
			return nil, ErrRegistryUnavailable.New(
				nil, "cannot %s: registry %s redirects in a cycle or more than %d times", what, s.host, maxRedirects,
			)
		}
		req = req.Clone(req.Context())
		req.URL, req.Host = next, next.Host
	}
}

// isRedirect reports whether a response is a redirect that is followed. Uploads are never
// redirected: the content would reach a host that the user did not name.
func isRedirect(resp *http.Response, method string) bool {
	if method != http.MethodGet && method != http.MethodHead {
		return false
	}
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return true
	}
	return false
}

// authorized sends a request with the cached credentials, and repeats it with new ones after a challenge.
func (s *session) authorized(req *http.Request) (*http.Response, error) {
	var kept accepted
	if s.isHome(req.URL) {
		kept = s.token(callOf(req).scope())
	}
	resp, err := s.send(req, kept.authorization)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusUnauthorized,
		// Several registries respond in this way to credentials that have expired.
		resp.StatusCode == http.StatusForbidden && s.isOutdated(req.Context(), callOf(req), kept):
		return s.challenged(req, resp)
	}
	return resp, nil
}

// send sends one request.
func (s *session) send(req *http.Request, authorization string) (*http.Response, error) {
	transport, err := s.transportFor(req.URL)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	if authorization != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", authorization)
	}
	resp, err := s.roundTrip(transport, req, callOf(req).what)
	if err == nil && s.opts.Warn != nil && req.Method != http.MethodGet && req.Method != http.MethodHead {
		for _, message := range warnings(resp.Header) {
			s.opts.Warn(s.host, message)
		}
	}
	return resp, err
}

// roundTrip sends a request, and classifies the error of an open circuit breaker.
func (s *session) roundTrip(transport http.RoundTripper, req *http.Request, what string) (*http.Response, error) {
	resp, err := transport.RoundTrip(req)
	var open *retryAfterError
	if errors.As(err, &open) && !errcode.Known(err) {
		return nil, unreachable(open, what, req.URL.Host)
	}
	return resp, err
}

// closeBody closes the body of a request that is not sent.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
