package remote

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// session is the state of one registry host.
type session struct {
	opts   *Options
	host   string
	scheme string
	guard  *dialPolicy
	// retries sends requests, with retries, redirects and credentials, through own and other:
	// own reaches the host itself, other the hosts that it names.
	retries    *retryTransport
	own, other http.RoundTripper
	named      func(host string) *session

	mu sync.Mutex
	// tokens are Authorization headers by scope.
	tokens map[string]accepted
	// sent reports, by scope, whether credentials of the keychain were sent to the registry or its token server.
	sent map[string]bool
	// tokensPause is the token server's Retry-After.
	tokensPause pause
	// pageSize is the index in pageSizes of the first size that the registry has not refused.
	pageSize int
	// blobs are repositories in which blobs were seen. It is nil once the registry has refused to mount one.
	blobs map[oci.Digest]string
}

func newSession(opts *Options, host string, named func(string) *session) *session {
	s := &session{
		opts: opts, host: host, scheme: schemeOf(opts, host), guard: newDialPolicy(opts, host), named: named,
		tokens: map[string]accepted{}, sent: map[string]bool{},
		blobs: map[oci.Digest]string{},
	}
	own, other := s.transports()
	s.own, s.other = opts.Health.transport(own), opts.Health.transport(other)
	s.retries = &retryTransport{next: roundTripperFunc(s.follow), opts: opts}
	return s
}

// transports returns the connections to the host itself and to the hosts that it names.
func (s *session) transports() (own, other http.RoundTripper) {
	if s.opts.Transport != nil {
		return s.opts.Transport, s.opts.Transport
	}
	h := s.opts.Hosts[s.host]
	home := s.transport(h)
	home.DialContext = s.guard.dialHome
	// Hosts that the registry names are always verified, with the registry's own roots:
	// the token server of a private registry has a certificate of the same CA.
	named := s.transport(HostOptions{RootCAs: h.RootCAs})
	named.DialContext = s.guard.dialOther
	return learningTransport{home, s.guard}, named
}

// schemeOf returns http or https. The scheme of a session never changes.
func schemeOf(opts *Options, host string) string {
	h, configured := opts.Hosts[host]
	if h.PlainHTTP || (!configured && oci.IsLoopback(host)) {
		return "http"
	}
	return "https"
}

func (s *session) transport(h HostOptions) *http.Transport {
	roots := h.RootCAs
	if roots == nil {
		roots = s.opts.RootCAs
	}
	return &http.Transport{
		Proxy: s.guard.proxy,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: roots, Time: s.opts.Now,
			InsecureSkipVerify: h.SkipVerify, // Only for hosts for which the user disables verification.
		},
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    50,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  s.opts.Patience,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

func (s *session) close() {
	closeIdle(s.own)
	closeIdle(s.other)
}

// url returns the URL of a path of the registry's API.
func (s *session) url(path string) *url.URL {
	return &url.URL{Scheme: s.scheme, Host: s.host, Path: path}
}

// isHome reports whether a URL leads to the registry itself: same scheme, same
// host, same port.
func (s *session) isHome(u *url.URL) bool { return u.Scheme == s.scheme && u.Host == s.host }

// homeURL returns u, with the scheme and the host of the session if it leads to the registry itself: servers behind a
// proxy that terminates TLS name themselves with the scheme http, and others with the default port.
func (s *session) homeURL(u *url.URL) *url.URL {
	if !s.isSameHost(u) || u.Scheme != s.scheme && u.Scheme != "http" {
		return u
	}
	home := *u
	home.Scheme, home.Host = s.scheme, s.host
	return &home
}

// isSameHost reports whether a URL has the host of the registry, with any scheme.
func (s *session) isSameHost(u *url.URL) bool {
	own := url.URL{Scheme: s.scheme, Host: s.host}
	return strings.EqualFold(withoutDefaultPort(u), withoutDefaultPort(&own))
}

// withoutDefaultPort returns the host of a URL, without the port if it is the default one of the scheme.
func withoutDefaultPort(u *url.URL) string {
	if port := u.Port(); u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		return strings.TrimSuffix(u.Host, ":"+port)
	}
	return u.Host
}

// transportFor returns the transport for a URL, and rejects URLs that must not be
// followed.
func (s *session) transportFor(u *url.URL) (http.RoundTripper, error) {
	if s.isHome(u) {
		return s.own, nil
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && s.scheme == "http") {
		return nil,
			ErrForbiddenAddress.New(nil, "registry %s referred its client to %q without TLS", s.host, u.Scheme+"://"+u.Host).
				WithDo("Do not trust the registry, or the network: a response was modified.")
	}
	if u.User != nil || u.Host == "" {
		return nil, ErrForbiddenAddress.New(nil, "registry %s referred its client to a malformed address", s.host)
	}
	if _, configured := s.opts.Hosts[u.Host]; configured {
		if named := s.named(u.Host); named.scheme == u.Scheme {
			return named.own, nil
		}
	}
	if err := s.guard.checkURL(u); err != nil {
		return nil, err
	}
	return s.other, nil
}

// deadline returns the maximum duration of a call, including all attempts, that transfers
// size bytes.
func (s *session) deadline(ctx context.Context, size int64) (context.Context, context.CancelFunc) {
	patience := time.Duration(s.opts.Attempts) * s.opts.Patience
	return context.WithTimeout(ctx, patience+time.Duration(size/s.opts.MinRate)*time.Second)
}

// answer is a small response that was read completely.
type answer struct {
	*http.Response
	body []byte
}

// read sends a request and returns a response of at most most bytes. For a status other
// than 200 it returns the response with a closed body and the error of statusError.
func (s *session) read(ctx context.Context, c call, most int64) (answer, error) {
	ctx, cancel := s.deadline(ctx, most)
	defer cancel()
	resp, err := s.do(ctx, c)
	if err != nil {
		return answer{}, err
	}
	defer drain(resp)
	if resp.StatusCode != http.StatusOK {
		return answer{Response: resp}, s.statusError(resp, c)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err != nil {
		return answer{}, s.networkError(ctx, err, c.what)
	}
	if int64(len(body)) > most {
		return answer{}, oci.ErrManifestTooLarge.New(
			nil, "cannot %s: the response has more than %d bytes (--max-manifest-size)", c.what, most,
		)
	}
	return answer{resp, body}, nil
}

// drain reads the rest of a small response, so that the connection can be reused.
func drain(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	_ = resp.Body.Close()
}
