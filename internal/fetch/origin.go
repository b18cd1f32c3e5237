package fetch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/credentials"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Origin is the location of a package's content.
type Origin struct {
	// Ref is the image, after all rewriting. It may have no digest. It is zero for
	// content that only has a name in the package cache.
	Ref oci.Reference
	// Endpoints are tried in this order: the mirrors, then Ref itself.
	Endpoints []Endpoint
	// Signed returns what is required of the signatures of the content. Nil requires nothing.
	Signed func(ctx context.Context) ([]signature.Requirement, error)
	// Lenient reads the package with the lenient policy; see xpkg.Policy.
	Lenient bool
}

// Endpoint is a repository with the settings for its access.
type Endpoint struct {
	Ref oci.Reference
	// Keychain contains the credentials of pull secrets. The credentials of this machine are used if it is nil or has
	// none for a registry.
	Keychain *credentials.Keychain
	// Secrets, if not nil, returns the keychain when a registry is first accessed, so cached content needs no secret.
	Secrets func(ctx context.Context) (*credentials.Keychain, error)
	// CABundle (PEM) is trusted for the registry instead of the system's root CAs.
	CABundle string
	// PlainHTTP uses HTTP without TLS.
	PlainHTTP bool
}

// Plain returns the origin of a reference without any configuration.
func Plain(ref oci.Reference) Origin { return Origin{Ref: ref, Endpoints: []Endpoint{{Ref: ref}}} }

// policy returns the policy for reading the package.
func (o Origin) policy() xpkg.Policy {
	if o.Lenient {
		return xpkg.PolicyInstall().Lenient()
	}
	return xpkg.PolicyInstall()
}

// at returns the name of content of the origin for messages.
func (o Origin) at(d oci.Digest) string {
	if o.Ref.Repository == "" {
		return d.String()
	}
	return o.Ref.WithDigest(d).String()
}

// first tries one location after another until one succeeds. The error is the error of the origin, the last location,
// and includes the errors of the mirrors.
func first[T any](ctx context.Context, o Origin, ask func(Endpoint) (T, error)) (answer T, err error) {
	places := o.Endpoints
	if len(places) == 0 {
		places = Plain(o.Ref).Endpoints
	}
	var mirrors []string
	for i, p := range places {
		answer, err = ask(p)
		if err == nil || i == len(places)-1 || ctx.Err() != nil || errors.Is(err, store.ErrStoreWrite) {
			break
		}
		mirrors = append(mirrors, fmt.Sprintf("%s: %v", p.Ref.Name(), err))
	}
	return answer, beside(err, mirrors)
}

// beside adds the errors of mirrors to the error of the origin.
func beside(err error, mirrors []string) error {
	if err == nil || len(mirrors) == 0 {
		return err
	}
	return fmt.Errorf("%w (and of its mirrors, %s)", err, strings.Join(mirrors, "; "))
}
