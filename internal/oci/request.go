package oci

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// call is a request that can be made again.
type call struct {
	method string
	url    *url.URL
	header http.Header
	// body opens the content to send, and size is its length.
	body func(ctx context.Context) (io.ReadCloser, error)
	size int64
	// repository is what credentials are for, and actions is what a token must
	// allow, such as "pull"; both are empty for the registry as a whole.
	repository, actions string
	// what names the operation in errors, as in "cannot <what>".
	what string
}

// scope is what a token is asked for (CNCF distribution, "Token Scope").
func (c call) scope() string {
	if c.repository == "" {
		return ""
	}
	return "repository:" + c.repository + ":" + c.actions
}

const maxRedirects = 5

// do makes a call, again when it fails in a way that can pass, and gives the
// answer whatever its status is. The caller closes the body.
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

// again decides whether another attempt makes sense, and after which wait. A
// registry that asks for a longer wait than is configured is left alone for that
// long.
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

// longestRetryAfter is how long a host is believed to want to be left alone. After
// that one request shows whether it still does.
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

// throttled is the failure of a request that the registry asked not to make yet.
func (s *session) throttled(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.Now().Before(s.until) {
		return ErrThrottled.New(&later{at: s.until}, "cannot %s: registry %s is throttled", what, s.host)
	}
	return nil
}

// follow makes a call and goes where the registry redirects it, with the
// credentials of the registry for the registry alone.
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

// isRedirect tells the answers that say where the content is. Uploads are never
// redirected: the content would go to a place that was not named.
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

// authorized makes a call with the credentials that are known, and once more
// with those that the answer asks for.
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

// send makes one request.
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
	return s.roundTrip(transport, req, c.what)
}

// roundTrip makes a request unless its host is known not to answer.
func (s *session) roundTrip(transport http.RoundTripper, req *http.Request, what string) (*http.Response, error) {
	host := req.URL.Scheme + "://" + req.URL.Host
	if why := s.opts.Health.ask(host); why != nil {
		return nil, ErrRegistryUnavailable.New(why, "cannot %s: registry %s cannot be reached", what, req.URL.Host)
	}
	resp, err := transport.RoundTrip(req)
	switch {
	case err == nil:
		s.opts.Health.answered(host)
	case req.Context().Err() != nil, failureOf(err), isTLS(err):
	default:
		s.opts.Health.silent(host, reason(err))
	}
	return resp, err
}
