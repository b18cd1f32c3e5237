// Package cloudidentity gets credentials for the registries of Amazon, Azure and Google Cloud from the identity that
// the cloud gives to the process: the ServiceAccount of a Pod, the machine, or the user of the cloud's own tools.
package cloudidentity

import (
	"context"
	"crypto/x509"
	"errors"
	"iter"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"golang.org/x/sync/singleflight"

	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

const (
	// patience bounds the requests for one token.
	patience = 15 * time.Second
	// early is the time before its expiry at which a token is no longer used. The metadata service of Google Cloud
	// returns a token until four minutes before its expiry.
	early = 3 * time.Minute
	// failureLife is the time for which a failure is remembered.
	failureLife = time.Minute
)

// Options configures a Keychain. The zero value is valid.
type Options struct {
	// RootCAs replaces the system's root CAs.
	RootCAs *x509.CertPool
	// Dial opens connections; nil means a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Now returns the time; nil means the system clock.
	Now func() time.Time
}

// Keychain is a keychain with the credentials of the identity of the process for the registries of its cloud. It
// accesses the services of a cloud only for the exact hosts of the registries of this cloud, and keeps a token until
// shortly before it expires. It is safe for concurrent use.
type Keychain struct {
	clients
	asking singleflight.Group

	mu   sync.Mutex
	kept map[string]outcome
}

// outcome is the result of a request for the token of a registry.
type outcome struct {
	auth authn.AuthConfig
	err  error
	// until is the time until which the outcome is used.
	until time.Time
}

// token is a credential for a registry.
type token struct {
	user, password string
	expires        time.Time
}

// New returns a keychain. It accesses nothing.
func New(o Options) *Keychain { return &Keychain{clients: newClients(o), kept: map[string]outcome{}} }

// Resolve implements [authn.Keychain].
func (k *Keychain) Resolve(r authn.Resource) (authn.Authenticator, error) {
	return remote.FirstCandidate(context.Background(), k, r)
}

// Candidates implements [remote.Candidates]. Anonymous credentials come last: content can be public while the identity
// has no access to the registry.
func (k *Keychain) Candidates(ctx context.Context, r authn.Resource) iter.Seq2[authn.AuthConfig, error] {
	return func(yield func(authn.AuthConfig, error) bool) {
		reg, ok := registryAt(r.RegistryStr())
		if !ok {
			return
		}
		auth, err := k.credentials(ctx, reg)
		if yield(auth, err) && err == nil {
			yield(authn.AuthConfig{}, nil)
		}
	}
}

// credentials returns the credentials for a registry. Concurrent callers wait for the same request, each until its
// context ends.
func (k *Keychain) credentials(ctx context.Context, r registry) (authn.AuthConfig, error) {
	if o, ok := k.remembered(r.host); ok {
		return o.auth, o.err
	}
	answer := k.asking.DoChan(r.host, func() (any, error) {
		if o, ok := k.remembered(r.host); ok {
			return o, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		t, err := k.token(ctx, r)
		if err == nil && t.password == "" {
			err = errors.New("the response contains no token")
		}
		return k.remember(r, t, err), nil
	})
	select {
	case <-ctx.Done():
		return authn.AuthConfig{}, context.Cause(ctx)
	case a := <-answer:
		o := a.Val.(outcome) //nolint:forcetypeassert // The function above returns it.
		return o.auth, o.err
	}
}

// token gets a token for a registry.
func (k *Keychain) token(ctx context.Context, r registry) (token, error) {
	switch r.cloud {
	case amazon:
		return k.amazonToken(ctx, r)
	case azure:
		return k.azureToken(ctx, r.host)
	default:
		return k.googleToken(ctx)
	}
}

func (k *Keychain) remembered(host string) (outcome, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	o, ok := k.kept[host]
	return o, ok && k.now().Before(o.until)
}

// remember keeps the outcome of a request, and forgets those that are no longer used.
func (k *Keychain) remember(r registry, t token, err error) outcome {
	now := k.now()
	o := outcome{auth: authn.AuthConfig{Username: t.user, Password: t.password}}
	if err != nil {
		o.err = ErrCloudIdentity.New(err, "cannot use the %s identity of this process", r.cloud.name()).
			WithDo("%s", r.cloud.advice())
		o.until = now.Add(failureLife)
	} else {
		o.until = t.expires.Add(-min(early, t.expires.Sub(now)/2))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.kept, func(_ string, o outcome) bool { return !now.Before(o.until) })
	k.kept[r.host] = o
	return o
}
