package oci

import (
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
)

// RemoteOptions configure a client of registries. The zero value works.
type RemoteOptions struct {
	// Keychain gives the credentials for a registry; nil means none at all. It is
	// asked for the exact host and port that requests go to.
	Keychain authn.Keychain
	// Hosts configures single registries by their host, with the port when the
	// references have one.
	Hosts map[string]HostOptions
	// UserAgent is sent with every request; "xpkg" when it is empty.
	UserAgent string
	Limits    Limits

	// Transport, when it is set, takes the place of everything that dials. The
	// checks of addresses that need a connection cannot be made then.
	Transport http.RoundTripper
	// Dial makes connections; a net.Dialer when it is nil.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Lookup resolves names; the system's resolver when it is nil.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Proxy chooses a proxy for a request; the environment's when it is nil.
	Proxy func(*http.Request) (*url.URL, error)

	// Health, when it is set, remembers hosts that do not answer, so that nobody
	// waits for them twice. Clients can share it.
	Health *Health

	// Progress, when it is set, is told of the content that moves, from the
	// goroutine that moves it.
	Progress func(Transfer)

	// Attempts bounds how often a request is made; 4 when it is zero.
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

	// Now gives the time; the system clock when it is nil.
	Now func() time.Time
	// Sleep waits between attempts, and less when the context ends.
	Sleep func(ctx context.Context, d time.Duration) error
	// Jitter gives a number in [0,1) that spreads attempts out.
	Jitter func() float64
}

// Transfer is how far one content has got.
type Transfer struct {
	// Upload tells a push from a download.
	Upload bool
	Digest Digest
	// Done and Total are bytes. Done starts again when an upload has to.
	Done, Total int64
}

// HostOptions configure one registry.
type HostOptions struct {
	// PlainHTTP speaks HTTP without TLS. Registries on this machine are spoken to
	// that way unless they have an entry in Hosts; no other one ever is, whatever
	// it answers.
	PlainHTTP bool
	// RootCAs are trusted for this registry instead of the system's.
	RootCAs *x509.CertPool
	// SkipVerify accepts any certificate.
	SkipVerify bool
}

// Remote is a client of registries (OCI distribution specification). It follows
// no address into a private network that its user did not name, sends
// credentials to no other host than they were configured for, and never falls
// back from HTTPS to HTTP. It can be used by many goroutines.
type Remote struct {
	opts    RemoteOptions
	flights flights

	mu       sync.Mutex
	sessions map[string]*session
}

// NewRemote makes a client. It makes no connection.
func NewRemote(opts RemoteOptions) *Remote {
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
	orInt(&opts.Attempts, 4)
	orInt64(&opts.MinRate, 16<<10)
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
	return &Remote{opts: opts, sessions: map[string]*session{}}
}

// Close ends the connections that are kept for further requests.
func (r *Remote) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sessions {
		s.close()
	}
}

// Ping asks a registry whether it accepts the credentials that the keychain has
// for it.
func (r *Remote) Ping(ctx context.Context, registry string) error {
	s := r.session(Reference{Registry: registry}.host())
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

// session gives what is kept for one host: connections, tokens, and until when it
// wants to be left alone.
func (r *Remote) session(host string) *session {
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
