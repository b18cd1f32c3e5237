package fetch

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/credentials"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// ErrCABundleInvalid is the code for a CA bundle without certificates.
var ErrCABundleInvalid = errcode.Code{
	Name: "CABundleInvalid", Class: errcode.Invalid,
	Cause: "The caBundle of an ImageConfig contains no certificate.",
	Fix:   "Write the CA certificates in PEM format into spec.registry.caBundle.",
}

// clientKey identifies a client. Locations share a client, its connections and its tokens only if the host, the
// connection settings and all credentials are equal.
type clientKey struct {
	host        string
	credentials string
	authorities [sha256.Size]byte
	plainHTTP   bool
}

// client is a client of one registry.
type client struct {
	key    clientKey
	remote *remote.Client
	used   int64
}

// pool caches the most recently used clients.
type pool struct {
	base remote.Options
	most int

	mu      sync.Mutex
	uses    int64
	clients map[clientKey]*client
}

func newPool(o Options) *pool {
	base := o.Remote
	base.Limits = o.Limits
	if base.Now == nil {
		base.Now = o.Now
	}
	if base.Health == nil {
		base.Health = remote.NewCircuitBreaker(base.Now)
	}
	if base.MaxRetryAfter == 0 {
		// The manager has other packages to reconcile and retries later, so it does not wait for a throttling registry.
		base.MaxRetryAfter = time.Second
	}
	return &pool{base: base, most: o.Clients, clients: map[clientKey]*client{}}
}

// get returns the client for a location. It reads the secrets of the location and accesses no registry.
func (p *pool) get(ctx context.Context, place Endpoint) (*client, error) {
	keychain := place.Keychain
	if place.Secrets != nil {
		var err error
		if keychain, err = place.Secrets(ctx); err != nil {
			return nil, err
		}
	}
	key := clientKey{host: place.Ref.Host(), credentials: keychain.Fingerprint(), plainHTTP: place.PlainHTTP}
	if place.CABundle != "" {
		key.authorities = sha256.Sum256([]byte(place.CABundle))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.clients[key]
	if !ok {
		remote, err := p.connect(place, keychain)
		if err != nil {
			return nil, err
		}
		p.makeRoom()
		c = &client{key: key, remote: remote}
		p.clients[key] = c
	}
	p.uses++
	c.used = p.uses
	return c, nil
}

// connect returns a new client, without opening a connection.
func (p *pool) connect(place Endpoint, keychain *credentials.Keychain) (*remote.Client, error) {
	opts, host := p.base, place.Ref.Host()
	if keychain.Fingerprint() != "" {
		opts.Keychain = keychain
		if p.base.Keychain != nil {
			opts.Keychain = remote.FirstKeychain(keychain, p.base.Keychain)
		}
	}
	if place.CABundle != "" || place.PlainHTTP {
		settings := remote.HostOptions{PlainHTTP: place.PlainHTTP}
		if place.CABundle != "" {
			settings.RootCAs = x509.NewCertPool()
			settings.CAAdvice = fmt.Sprintf(
				"Put the certificate of its CA into spec.registry.caBundle of the ImageConfig for %s, which `kubectl get imageconfigs` lists.",
				host,
			)
			if !settings.RootCAs.AppendCertsFromPEM([]byte(place.CABundle)) {
				return nil, ErrCABundleInvalid.New(nil, "the caBundle for registry %s contains no certificate", host)
			}
		}
		opts.Hosts = maps.Clone(p.base.Hosts)
		if opts.Hosts == nil {
			opts.Hosts = map[string]remote.HostOptions{}
		}
		opts.Hosts[host] = settings
	}
	return remote.New(opts), nil
}

// makeRoom removes the least recently used client. Its current users can continue.
func (p *pool) makeRoom() {
	if len(p.clients) < p.most {
		return
	}
	var oldest *client
	for _, c := range p.clients {
		if oldest == nil || c.used < oldest.used {
			oldest = c
		}
	}
	delete(p.clients, oldest.key)
	oldest.remote.Close()
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.clients {
		c.remote.Close()
	}
}
