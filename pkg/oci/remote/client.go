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

// Options configures a Client. The zero value is valid.
type Options struct {
	// Keychain returns the credentials for the exact host and port of a request; nil
	// means no credentials. If it implements Candidates, all of its credentials are tried.
	Keychain authn.Keychain
	// Hosts configures registries by host, with the port if references contain one.
	Hosts map[string]HostOptions
	// RootCAs replaces the system's root CAs for registries whose HostOptions have none.
	// It does not make a loopback registry use TLS.
	RootCAs *x509.CertPool
	// UserAgent is sent with every request; "xpkg" if it is empty.
	UserAgent string
	Limits    oci.Limits

	// Transport, if set, replaces every connection. Checks of connection addresses are
	// then impossible.
	Transport http.RoundTripper
	// Dial opens connections; nil means a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Lookup resolves names; nil means the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Proxy returns the proxy for a request; nil means the proxy of the environment.
	Proxy func(*http.Request) (*url.URL, error)

	// Health, if set, fails requests to hosts that do not respond. Clients can share it.
	Health *CircuitBreaker

	// Progress, if set, receives the progress of transfers, on the goroutine of the
	// transfer.
	Progress func(Transfer)

	// Unchanged, if set, receives the references of pushes that change nothing, because the registry has the content under
	// the tag, on the goroutine of the push.
	Unchanged func(ref oci.Reference)

	// Warn, if set, receives the warnings in registries' responses to writes (OCI
	// distribution specification, "Warnings"), as printable text.
	Warn func(registry, message string)

	// Attempts bounds the attempts of a request; zero means 4.
	Attempts int
	// Patience bounds the wait for a response and for small content; zero means 30
	// seconds.
	Patience time.Duration
	// MinRate is the minimum rate of a transfer of large content, in bytes per second;
	// zero means 16 KiB.
	MinRate int64
	// MaxRetryAfter bounds the wait that a registry can request; a request that would
	// wait longer fails with ErrThrottled. Zero means 20 seconds.
	MaxRetryAfter time.Duration

	// Now returns the time; nil means the system clock.
	Now func() time.Time
	// Sleep waits between attempts, or until the context ends.
	Sleep func(ctx context.Context, d time.Duration) error
	// Jitter returns a number in [0,1) that spreads retries.
	Jitter func() float64
}

// Transfer is the progress of the transfer of a blob.
type Transfer struct {
	// Upload is true for a push and false for a download.
	Upload bool
	Digest oci.Digest
	// Done and Total are in bytes. Done restarts at zero if an upload is restarted.
	Done, Total int64
}

// HostOptions configures one registry.
type HostOptions struct {
	// PlainHTTP uses HTTP without TLS. Loopback registries without an entry in Hosts use
	// it by default; no other registry ever does.
	PlainHTTP bool
	// RootCAs replaces the system's root CAs for this registry.
	RootCAs *x509.CertPool
	// CAAdvice tells users where RootCAs are configured, in the error of a certificate that another CA issued. The default
	// names the flag --ca-file.
	CAAdvice string
	// SkipVerify accepts any certificate.
	SkipVerify bool
}

// Client is a client of registries (OCI distribution specification). It does not follow
// addresses in private networks that its user did not name, sends credentials only to the
// host that they are configured for, and never falls back from HTTPS to HTTP. It is safe
// for concurrent use.
type Client struct {
	opts Options
	// fetching serializes the downloads of a digest, so that packages that share content
	// do not download it twice.
	fetching keyedmutex.Mutex[oci.Digest]

	mu       sync.Mutex
	sessions map[string]*session
}

// New returns a client. It does not open a connection.
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

// Close closes idle connections.
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
	c := call{method: http.MethodGet, url: s.url("/v2/"), what: "contact registry " + registry}
	resp, err := s.do(ctx, c)
	if err != nil {
		return err
	}
	defer drain(resp)
	if resp.StatusCode != http.StatusOK {
		return s.statusError(resp, c)
	}
	return nil
}

// session returns the session of a host: connections, tokens and Retry-After.
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
