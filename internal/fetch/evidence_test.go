package fetch_test

import (
	"crypto"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/internal/testing/dockerregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/signing"
	"github.com/xpkg-dev/xpkg/internal/testing/sourcetest"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// proxied is a registry whose answers to requests for referrers can be replaced by a status.
type proxied struct {
	host   string
	status atomic.Int64
	// damaged is a part of the paths that are not found.
	damaged atomic.Value
}

func proxy(t *testing.T, backend string) *proxied {
	t.Helper()
	p := &proxied{}
	to := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: backend})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		part, _ := p.damaged.Load().(string)
		switch status := int(p.status.Load()); {
		case status != 0 && strings.Contains(r.URL.Path, "/referrers/"):
			w.WriteHeader(status)
		case part != "" && strings.Contains(r.URL.Path, part):
			w.WriteHeader(http.StatusNotFound)
		default:
			to.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	p.host = strings.TrimPrefix(server.URL, "http://")
	return p
}

// Each scheme is found in registries with and without the referrers API. A registry that denies or fails the list
// leaves it unknown, whatever else it has.
func TestEvidenceInEachScheme(t *testing.T) {
	local := httptest.NewServer(localregistry.New(t))
	t.Cleanup(local.Close)
	client := remote.New(remote.Options{Attempts: 1})
	t.Cleanup(client.Close)
	key := signing.NewKey(t, "p256", crypto.SHA256)
	for backend, address := range map[string]string{
		"with referrers":    strings.TrimPrefix(local.URL, "http://"),
		"without referrers": dockerregistry.Start(t),
	} {
		schemes := map[string]func(ref oci.Reference){
			"bundle": func(ref oci.Reference) {
				signing.AttachBundle(t, client, ref, key.Bundle(t, signing.Statement(ref.Digest, signing.Sign)))
			},
			"tag": func(ref oci.Reference) {
				payload := signing.Payload(ref.Digest)
				signing.TagPayload(t, client, ref, payload, key.Tagged(t, payload))
			},
			"none": func(oci.Reference) {},
		}
		for scheme, sign := range schemes {
			p := proxy(t, address)
			name := strings.ReplaceAll(scheme+"-"+backend, " ", "-")
			pushed := publish.Stream(t, p.host, "acme/"+name, "v1", []byte(
				"apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: "+name+"}\n",
			))
			d, err := client.Resolve(t.Context(), pushed)
			if err != nil {
				t.Fatal(err)
			}
			ref := pushed.WithDigest(d.Digest)
			sign(ref)
			for status, want := range map[int]error{
				0: nil, http.StatusUnauthorized: signature.ErrUnknown, http.StatusForbidden: signature.ErrUnknown,
				http.StatusInternalServerError: signature.ErrUnknown, http.StatusTooManyRequests: signature.ErrUnknown,
				http.StatusNotFound: nil, http.StatusMethodNotAllowed: nil,
			} {
				if want == nil && (scheme == "none" ||
					// Without the API, the registry of the test has no fallback index: the bundle is not listed.
					scheme == "bundle" && backend == "with referrers" && status != 0) {
					want = signature.ErrNotSigned
				}
				p.status.Store(int64(status))
				if err := verify(t, ref, key); !errors.Is(err, want) {
					t.Errorf("%s, %s, status %d: %v, want %v", backend, scheme, status, err, want)
				}
			}
		}
	}
}

// verify verifies the signatures of an image with a new source, which has no evidence.
func verify(t *testing.T, ref oci.Reference, key *signing.Key) error {
	t.Helper()
	o := fetch.Plain(ref)
	o.Signed = by(t, key)
	source := sourcetest.New(t, func(o *fetch.Options) { o.Remote.Attempts = 1 })
	_, err := source.Verify(t.Context(), o, ref.Digest, true)
	return err
}

// A bundle that cannot be read is named, unless others suffice, and many referrers are bounded.
//
// hardening: G6
func TestEvidenceThatCannotBeReadIsNamed(t *testing.T) {
	local := httptest.NewServer(localregistry.New(t))
	t.Cleanup(local.Close)
	p := proxy(t, strings.TrimPrefix(local.URL, "http://"))
	client := remote.New(remote.Options{Attempts: 1})
	t.Cleanup(client.Close)
	key, stranger := signing.NewKey(t, "p256", crypto.SHA256), signing.NewKey(t, "p256", crypto.SHA256)
	image := oci.DigestOf([]byte("image"))
	ref := oci.MustParseReference(p.host + "/acme/many@" + image.String())
	bundle := key.Bundle(t, signing.Statement(image, signing.Sign))
	artifact := signing.AttachBundle(t, client, ref, bundle)
	p.damaged.Store("/blobs/" + oci.DigestOf(bundle).String())
	err := verify(t, ref, key)
	if !errors.Is(err, signature.ErrUnknown) || !strings.Contains(fmt.Sprint(err), artifact.String()) {
		t.Errorf("a missing blob: %v, want the artifact %s", err, artifact)
	}
	signing.AttachBundle(t, client, ref, key.Bundle(t, signing.Statement(image, signing.Sign)))
	if err := verify(t, ref, key); err != nil {
		t.Errorf("beside a valid bundle: %v", err)
	}
	p.damaged.Store("")
	crowded := oci.MustParseReference(p.host + "/acme/crowd@" + image.String())
	for i := range 65 {
		signing.AttachBundle(t, client, crowded, stranger.Bundle(t, signing.Statement(
			image, fmt.Sprintf("https://example.org/%d", i),
		)))
	}
	if err := verify(t, crowded, key); !errors.Is(err, signature.ErrUnknown) ||
		!strings.Contains(err.Error(), "65 artifacts") {
		t.Errorf("65 bundles: %v", err)
	}
}
