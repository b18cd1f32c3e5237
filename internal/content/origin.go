package content

import (
	"context"
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/credentials"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// Origin says where the content of a package is.
type Origin struct {
	// Ref is the image, after all rewriting. It may have no digest.
	Ref oci.Reference
	// Places are asked in this order: the mirrors, and Ref itself at the end.
	// There is always one.
	Places []Place
}

// Place is a repository, and how it is reached.
type Place struct {
	Ref oci.Reference
	// Keychain has the credentials of pull secrets. Those of this machine are used
	// where it has none, and when it is nil.
	Keychain *credentials.Keychain
	// Secrets, when it is set, gives the keychain instead, at the moment when a
	// registry has to be asked: so content that is at hand needs no secret.
	Secrets func(ctx context.Context) (*credentials.Keychain, error)
	// CABundle (PEM) is trusted for the registry instead of the system's
	// authorities.
	CABundle string
	// PlainHTTP speaks HTTP to the registry, without TLS.
	PlainHTTP bool
}

// Plain is the origin of a reference that nobody configured anything for.
func Plain(ref oci.Reference) Origin { return Origin{Ref: ref, Places: []Place{{Ref: ref}}} }

// first asks one place after the other until one of them answers. The failure is
// that of the last one, the origin itself, and tells what the mirrors said.
func first[T any](ctx context.Context, o Origin, ask func(Place) (T, error)) (T, error) {
	var mirrors []string
	for i, p := range o.Places {
		answer, err := ask(p)
		switch {
		case err == nil:
			return answer, nil
		case i == len(o.Places)-1 || ctx.Err() != nil || oci.ErrStoreWrite.Is(err):
			return answer, beside(err, mirrors)
		}
		mirrors = append(mirrors, fmt.Sprintf("%s: %v", p.Ref.Name(), err))
	}
	panic("content: an origin without a place")
}

// beside adds to a failure of the origin what the mirrors said before.
func beside(err error, mirrors []string) error {
	if len(mirrors) == 0 {
		return err
	}
	return fmt.Errorf("%w (mirrors: %s)", err, strings.Join(mirrors, "; "))
}
