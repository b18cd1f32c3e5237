package remote

import (
	"context"
	"iter"

	"github.com/google/go-containerregistry/pkg/authn"
)

// Candidates is implemented by keychains that can have several credentials for a resource.
type Candidates interface {
	// Candidates returns the credentials for a resource, in the order in which a client tries them, and the errors of
	// those that cannot be read. The advice of an error with a code is that of the denied access. Anonymous credentials
	// can only be the last ones, after others; a client uses them by itself if there are no others.
	Candidates(ctx context.Context, r authn.Resource) iter.Seq2[authn.AuthConfig, error]
}

// FirstKeychain returns a keychain with the credentials of the first of several keychains that has any for a resource.
func FirstKeychain(keychains ...authn.Keychain) authn.Keychain { return first(keychains) }

type first []authn.Keychain

// Resolve implements [authn.Keychain]. It returns the first credentials.
func (f first) Resolve(r authn.Resource) (authn.Authenticator, error) {
	return FirstCandidate(context.Background(), f, r)
}

// Candidates implements [Candidates].
func (f first) Candidates(ctx context.Context, r authn.Resource) iter.Seq2[authn.AuthConfig, error] {
	return func(yield func(authn.AuthConfig, error) bool) {
		for _, k := range f {
			found := false
			for c, err := range candidatesOf(ctx, k, r) {
				if !yield(c, err) {
					return
				}
				found = found || err == nil
			}
			if found {
				return
			}
		}
	}
}

// FirstCandidate returns the first credentials for a resource, the first error if there are only errors, and anonymous
// credentials if there is neither.
func FirstCandidate(ctx context.Context, k Candidates, r authn.Resource) (authn.Authenticator, error) {
	var failed error
	for c, err := range k.Candidates(ctx, r) {
		if err == nil {
			return authn.FromConfig(c), nil
		}
		if failed == nil {
			failed = err
		}
	}
	return authn.Anonymous, failed
}

// candidatesOf returns the credentials of any keychain for a resource.
func candidatesOf(ctx context.Context, k authn.Keychain, r authn.Resource) iter.Seq2[authn.AuthConfig, error] {
	if several, ok := k.(Candidates); ok {
		return several.Candidates(ctx, r)
	}
	return func(yield func(authn.AuthConfig, error) bool) {
		auth, err := authn.Resolve(ctx, k, r)
		if err != nil {
			yield(authn.AuthConfig{}, err)
			return
		}
		c, err := authn.Authorization(ctx, auth)
		if err != nil {
			yield(authn.AuthConfig{}, err)
		} else if *c != (authn.AuthConfig{}) {
			yield(*c, nil)
		}
	}
}
