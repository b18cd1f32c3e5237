package fetch_test

import (
	"context"
	"crypto"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/internal/testing/signing"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// by requires signatures by keys, each in an ImageConfig of its own.
func by(t *testing.T, keys ...*signing.Key) func(context.Context) ([]signature.Requirement, error) {
	t.Helper()
	return func(ctx context.Context) (all []signature.Requirement, err error) {
		for _, k := range keys {
			r, err := signature.NewRequirement(ctx, "signed", &v1beta1.CosignVerification{Authorities: []v1beta1.CosignAuthority{{
				Name: "release", Key: &v1beta1.KeyReference{HashAlgorithm: "sha256"},
			}}}, func(context.Context, v1beta1.SecretKeySelector) ([]byte, error) { return k.PEM(t), nil })
			if err != nil {
				return nil, err
			}
			all = append(all, r)
		}
		return all, nil
	}
}

// Nothing is pulled before it is verified. What was verified is judged again without the registry, in another process
// and by other requirements.
//
// hardening: G8
func TestReadVerifies(t *testing.T) {
	r := newRegistry(t)
	push(t, r.address)
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	first, second, stranger := signing.NewKey(t, "p256", crypto.SHA256), signing.NewKey(t, "ed25519", crypto.SHA256),
		signing.NewKey(t, "p256", crypto.SHA256)
	dir := t.TempDir()
	source := open(t, dir)
	o := fetch.Plain(r.ref())
	d, err := source.Resolve(t.Context(), o, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.reset()
	o.Signed = by(t, first)
	if _, err := source.Read(t.Context(), o, d, true); !errors.Is(err, signature.ErrNotSigned) ||
		!strings.Contains(err.Error(), r.ref().Name()) {
		t.Errorf("without a signature: %v", err)
	}
	if blobs := r.matching("/blobs/"); len(blobs) > 0 {
		t.Errorf("content without a signature was pulled: %v", blobs[0].URL)
	}
	at := oci.MustParseReference(r.ref().Name() + "@" + d.String())
	for _, k := range []*signing.Key{stranger, first, second} {
		signing.AttachBundle(t, client, at, k.Bundle(t, signing.Statement(d, signing.Sign)))
	}
	if _, err := source.Read(t.Context(), o, d, true); err != nil {
		t.Fatal(err)
	}
	r.does(answer(http.StatusServiceUnavailable))
	r.reset()
	another := open(t, dir)
	for name, tc := range map[string]struct {
		keys []*signing.Key
		pull bool
		want error
	}{
		"the same requirement":         {[]*signing.Key{first}, true, nil},
		"another key":                  {[]*signing.Key{second}, true, nil},
		"both keys, and no pull":       {[]*signing.Key{first, second}, false, nil},
		"a key that has not signed":    {[]*signing.Key{signing.NewKey(t, "rsa", crypto.SHA256)}, false, signature.ErrUnknown},
		"one of two keys has not, too": {[]*signing.Key{first, signing.NewKey(t, "rsa", crypto.SHA256)}, false, signature.ErrUnknown},
	} {
		o.Signed = by(t, tc.keys...)
		if _, err := another.Read(t.Context(), o, d, tc.pull); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
	if all := r.matching(""); len(all) > 0 {
		t.Errorf("verified content needed the registry: %v", all[0].URL)
	}
	o.Signed = by(t, signing.NewKey(t, "p384", crypto.SHA384))
	if _, err := another.Read(t.Context(), o, d, true); !errors.Is(err, signature.ErrUnknown) {
		t.Errorf("a registry that is not available: %v", err)
	}
	broken := errors.New("the Secret cannot be read")
	o.Signed = func(context.Context) ([]signature.Requirement, error) { return nil, broken }
	if _, err := another.Read(t.Context(), o, d, true); !errors.Is(err, broken) {
		t.Errorf("requirements that cannot be read: %v", err)
	}
}
