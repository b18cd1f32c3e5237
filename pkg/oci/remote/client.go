package remote

import (
	"cmp"
	"context"
	"crypto/x509"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/xpkg-dev/xpkg/internal/keyedmutex"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Options configure a client of registries. The zero value works.
type Options struct {
	// Keychain returns the credentials for the exact host and port of a request; nil
	// means no credentials.
	Keychain authn.Keychain
	// Hosts configures single registries by their host, with the port when the
	// references have one.
	Hosts map[string]HostOptions
	// RootCAs are trusted for registries whose HostOptions have none, in place of the
	// system's. They do not make a loopback registry use TLS.
	RootCAs *x509.CertPool
	// UserAgent is sent with every request; "xpkg" when it is empty.
	UserAgent string
	Limits    oci.Limits

	// Transport, if set, replaces every connection. Checks of connection addresses are
	// then impossible.
	Transport http.RoundTripper
	// Dial opens connections; nil means a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Lookup resolves names; the system's resolver when it is nil.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Proxy chooses a proxy for a request; the environment's when it is nil.
	Proxy func(*http.Request) (*url.URL, error)

	// Health, if set, fails requests to hosts that do not respond. Clients can share it.
	Health *CircuitBreaker

	// Progress, if set, receives the progress of transfers, on the goroutine of the
	// transfer.
	Progress func(Transfer)

	// Warn, when it is set, gets the warnings that registries add to their answers
	// to writes (OCI distribution specification, "Warnings"), as printable text.
	Warn func(registry, message string)

	// Attempts bounds the attempts of a request; zero means 4.
	Attempts int
	// Patience bounds the wait for an answer and for small content; 30 seconds
	// when it is zero.
	Patience time.Duration
	// MinRate is the slowest transfer of large content that is put up with, in
	// bytes per second; 16 KiB when it is zero.
	MinRate int64
	// MaxRetryAfter bounds how long a registry can make a request wait before it
	// fails as Throttled; 20 seconds when it is zero.
	MaxRetryAfter time.Duration

	// Now returns the time; nil means the system clock.
	Now func() time.Time
	// Sleep waits between attempts, and less when the context ends.
	Sleep func(ctx context.Context, d time.Duration) error
	// Jitter returns a number in [0,1) that spreads retries.
	Jitter func() float64
}

// Transfer is how far one content has got.
type Transfer struct {
	// Upload is true for a push and false for a download.
	Upload bool
	Digest oci.Digest
	// Done and Total are bytes. Done starts again when an upload has to.
	Done, Total int64
}

// HostOptions configure one registry.
type HostOptions struct {
	// PlainHTTP uses HTTP without TLS. Loopback registries without an entry in Hosts use
	// it by default; no other registry ever does.
	PlainHTTP bool
	// RootCAs are trusted for this registry instead of the system's.
	RootCAs *x509.CertPool
	// SkipVerify accepts any certificate.
	SkipVerify bool
}

// Client is a client of registries (OCI distribution specification). It follows
// no address into a private network that its user did not name, sends
// credentials to no other host than they were configured for, and never falls
// back from HTTPS to HTTP. It can be used by many goroutines.
type Client struct {
	opts Options
	// fetching serializes the downloads of a digest, so that packages that share content
	// do not download it twice.
	fetching keyedmutex.Mutex[oci.Digest]

	mu       sync.Mutex
	sessions map[string]*session
}

// New returns a client. It opens no connection.
func New(opts Options) *Client {
	opts.Limits = opts.Limits.WithDefaults()
	if opts.Keychain == nil {
		opts.Keychain = anonymous{}
	}
	if opts.UserAgent == "" {
		opts.UserAgent = "xpkg"
	}
	if opts.Proxy == nil {
		opts.Proxy = http.ProxyFromEnvironment
	}
	opts.Attempts = cmp.Or(opts.Attempts, 4)
	opts.MinRate = cmp.Or(opts.MinRate, 16<<10)
	if opts.Patience == 0 {
		opts.Patience = 30 * time.Second
	}
	if opts.MaxRetryAfter == 0 {
		opts.MaxRetryAfter = 20 * time.Second
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Sleep == nil {
		opts.Sleep = sleep
	}
	if opts.Jitter == nil {
		opts.Jitter = rand.Float64
	}
	return &Client{opts: opts, sessions: map[string]*session{}}
}

// Close ends the connections that are kept for further requests.
func (r *Client) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sessions {
		s.close()
	}
}

// Ping checks that a registry accepts the keychain's credentials for it.
func (r *Client) Ping(ctx context.Context, registry string) error {
	s := r.session(oci.Reference{Registry: registry}.Host())
	resp, err := s.do(ctx, call{method: http.MethodGet, url: s.url("/v2/"), what: "ask registry " + registry})
	if err != nil {
		return err
	}
	defer drain(resp)
	if resp.StatusCode != http.StatusOK {
		return s.statusError(resp, "ask registry "+registry)
	}
	return nil
}

// session returns the state of one host: connections, tokens and Retry-After.
func (r *Client) session(host string) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sessions[host]
	if !ok {
		s = newSession(&r.opts, host, r.session)
		r.sessions[host] = s
	}
	return s
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// anonymous is a keychain without credentials.
type anonymous struct{}

func (anonymous) Resolve(authn.Resource) (authn.Authenticator, error) { return authn.Anonymous, nil }
