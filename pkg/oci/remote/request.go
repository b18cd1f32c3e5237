package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

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
	// for the registry as a whole.
	repository, actions string
	// what names the operation in errors, as in "cannot <what>".
	what string
}

// scope returns the token scope (CNCF distribution, "Token Scope").
func (c call) scope() string {
	if c.repository == "" {
		return ""
	}
	return "repository:" + c.repository + ":" + c.actions
}

const maxRedirects = 5

// do sends a request, retries transient failures, and returns the response with any
// status. The caller closes the body.
func (s *session) do(ctx context.Context, c call) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		if err := s.throttled(c.what); err != nil {
			return nil, err
		}
		resp, err := s.follow(ctx, c)
		wait, again := s.again(resp, err, attempt)
		if ctx.Err() != nil || !again {
			if err != nil {
				return nil, s.networkError(ctx, err, c.what)
			}
			return resp, nil
		}
		if resp != nil {
			drain(resp)
		}
		if err := s.opts.Sleep(ctx, wait); err != nil {
			return nil, s.networkError(ctx, err, c.what)
		}
	}
}

// again returns the wait before the next attempt, and whether to retry. If Retry-After is
// longer than MaxRetryAfter, it blocks the session for that time.
func (s *session) again(resp *http.Response, err error, attempt int) (time.Duration, bool) {
	wait := s.backoff(attempt)
	if err != nil {
		return wait, attempt < s.opts.Attempts && canPass(err)
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		asked := s.retryAfter(resp)
		if asked > s.opts.MaxRetryAfter {
			s.mu.Lock()
			s.until = s.opts.Now().Add(asked)
			s.mu.Unlock()
			return 0, false
		}
		if asked > 0 {
			wait = asked
		}
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusRequestTimeout:
	default:
		return 0, false
	}
	return wait, attempt < s.opts.Attempts
}

// backoff doubles from a quarter of a second, spread by half of itself.
func (s *session) backoff(attempt int) time.Duration {
	base := 250 * time.Millisecond << min(attempt-1, 6)
	return base/2 + time.Duration(s.opts.Jitter()*float64(base/2))
}

// longestRetryAfter bounds the Retry-After of a host. After that, one request shows
// whether the host still rejects requests.
const longestRetryAfter = time.Hour

// retryAfter reads the header of that name: seconds, or a date.
func (s *session) retryAfter(resp *http.Response) time.Duration {
	value := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, longestRetryAfter)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(at.Sub(s.opts.Now()), longestRetryAfter)
	}
	return 0
}

// throttled returns an error while the registry's Retry-After is in the future.
func (s *session) throttled(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.Now().Before(s.until) {
		return ErrThrottled.New(&retryAfterError{at: s.until}, "cannot %s: registry %s is throttled", what, s.host)
	}
	return nil
}

// follow sends a request and follows redirects. It sends the registry's credentials to
// the registry only.
func (s *session) follow(ctx context.Context, c call) (*http.Response, error) {
	seen := map[string]bool{}
	for {
		resp, err := s.authorized(ctx, c)
		if err != nil || !isRedirect(resp, c.method) {
			return resp, err
		}
		next, err := c.url.Parse(resp.Header.Get("Location"))
		drain(resp)
		if err != nil || resp.Header.Get("Location") == "" {
			return nil, ErrRegistryUnavailable.New(nil, "cannot %s: registry %s redirects to nowhere", c.what, s.host)
		}
		seen[c.url.String()] = true
		if seen[next.String()] || len(seen) > maxRedirects {
			return nil, ErrRegistryUnavailable.New(nil, "cannot %s: registry %s redirects in a circle or more than %d times", c.what, s.host, maxRedirects)
		}
		c.url = next
	}
}

// isRedirect reports whether a response redirects to content. Uploads are never
// redirected: the content would reach a host that the user did not name.
func isRedirect(resp *http.Response, method string) bool {
	if method != http.MethodGet && method != http.MethodHead {
		return false
	}
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// authorized sends a request with the cached credentials, and once more with new ones
// after a challenge.
func (s *session) authorized(ctx context.Context, c call) (*http.Response, error) {
	home := s.isHome(c.url)
	authorization := ""
	if home {
		authorization = s.token(c.scope())
	}
	resp, err := s.send(ctx, c, authorization)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	authorization, err = s.authorize(ctx, resp, c, home)
	if errors.Is(err, errNoChallenge) {
		return resp, nil
	}
	drain(resp)
	if err != nil {
		return nil, err
	}
	return s.send(ctx, c, authorization)
}

// send sends one request.
func (s *session) send(ctx context.Context, c call, authorization string) (*http.Response, error) {
	transport, err := s.transportFor(c.url)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, c.method, c.url.String(), nil)
	if err != nil {
		return nil, ErrRegistryUnavailable.New(err, "cannot %s", c.what)
	}
	for k, v := range c.header {
		req.Header[k] = v
	}
	req.Header.Set("User-Agent", s.opts.UserAgent)
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	if c.body != nil {
		if req.Body, err = c.body(ctx); err != nil {
			return nil, err
		}
		req.ContentLength = c.size
	}
	resp, err := s.roundTrip(transport, req, c.what)
	if err == nil && s.opts.Warn != nil && c.method != http.MethodGet && c.method != http.MethodHead {
		for _, message := range warnings(resp.Header) {
			s.opts.Warn(s.host, message)
		}
	}
	return resp, err
}

// roundTrip sends a request unless the circuit breaker rejects its host.
func (s *session) roundTrip(transport http.RoundTripper, req *http.Request, what string) (*http.Response, error) {
	host := req.URL.Scheme + "://" + req.URL.Host
	if why := s.opts.Health.ask(host); why != nil {
		return nil, ErrRegistryUnavailable.New(why, "cannot %s: registry %s cannot be reached", what, req.URL.Host)
	}
	resp, err := transport.RoundTrip(req)
	switch {
	case err == nil:
		s.opts.Health.answered(host)
	case req.Context().Err() != nil, errcode.Known(err), isTLS(err):
	default:
		s.opts.Health.silent(host, reason(err))
	}
	return resp, err
}
