package fetch_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/credentials"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/sourcetest"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// A mirror that cannot help is passed over, whatever is wrong with it.
func TestUnusableMirrorsAreSkipped(t *testing.T) {
	for name, broken := range map[string]struct {
		fault func(w http.ResponseWriter, r *http.Request) bool
		place func(*fetch.Endpoint)
	}{
		"Down": {
			place: func(p *fetch.Endpoint) { p.Ref = oci.MustParseReference(port.Free(t) + "/content/test:v1.0.0") },
		},
		"Unauthorized": {
			fault: func(w http.ResponseWriter, r *http.Request) bool { return answer(http.StatusUnauthorized)(w, r) },
		},
		"NotFound": {fault: answer(http.StatusNotFound)},
		"Broken":   {fault: answer(http.StatusBadGateway)},
		"Throttled": {fault: func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Retry-After", "3600")
			return answer(http.StatusTooManyRequests)(w, r)
		}},
		"Captive": {fault: func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, "<html>log in</html>")
			return true
		}},
		"OtherBytes": {fault: func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "sha256:") {
				return answer(http.StatusNotFound)(w, r)
			}
			w.Header().Set("Content-Type", string(oci.MediaTypeOCIManifest))
			_, _ = io.WriteString(w, `{"schemaVersion":2}`)
			return true
		}},
		"NoBlobs": {fault: func(w http.ResponseWriter, r *http.Request) bool {
			return strings.Contains(r.URL.Path, "/blobs/") && answer(http.StatusNotFound)(w, r)
		}},
		"NoSecret": {place: func(p *fetch.Endpoint) {
			p.Secrets = func(context.Context) (*credentials.Keychain, error) {
				return nil, credentials.ErrPullSecretNotFound.New(nil, "there is no pull secret x")
			}
		}},
		"BadAuthority": {place: func(p *fetch.Endpoint) { p.CABundle = "none" }},
	} {
		t.Run(name, func(t *testing.T) {
			home := newRegistry(t)
			ref := push(t, home.address)
			mirror := mirrorOf(t, home)
			mirror.does(broken.fault)
			place := fetch.Endpoint{Ref: mirror.ref()}
			if broken.place != nil {
				broken.place(&place)
			}
			o := fetch.Origin{Ref: ref, Endpoints: []fetch.Endpoint{place, {Ref: ref}}}
			source := sourcetest.New(t, nil)
			readable(t, source, o)
		})
	}
}

// A mirror that has the content is all that is needed.
func TestMirrorWithTheContentSuffices(t *testing.T) {
	home := newRegistry(t)
	ref := push(t, home.address)
	mirror := mirrorOf(t, home)
	home.reset()
	elsewhere := oci.MustParseReference(port.Free(t) + "/" + ref.Repository + ":" + ref.Tag)
	o := fetch.Origin{Ref: elsewhere, Endpoints: []fetch.Endpoint{{Ref: mirror.ref()}, {Ref: elsewhere}}}
	source := sourcetest.New(t, nil)
	readable(t, source, o)
	if len(mirror.matching("/blobs/")) == 0 {
		t.Error("the mirror was not asked")
	}
}

// If no endpoint has the content, the error is the origin's error, and contains the
// errors of the mirrors.
func TestFailureNamesMirrors(t *testing.T) {
	home := newRegistry(t)
	ref := push(t, home.address).WithTag("v9.9.9")
	mirror := mirrorOf(t, home)
	mirror.does(answer(http.StatusForbidden))
	o := fetch.Origin{Ref: ref, Endpoints: []fetch.Endpoint{{Ref: mirror.ref().WithTag("v9.9.9")}, {Ref: ref}}}
	_, err := sourcetest.New(t, nil).Resolve(t.Context(), o, 0)
	if !errors.Is(err, remote.ErrTagNotFound) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{`the tag "v9.9.9" does not exist in ` + ref.Name(), "and of its mirrors, " +
		mirror.address, "denies access"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// A canceled read is canceled at every endpoint.
func TestCancelledRead(t *testing.T) {
	home := newRegistry(t)
	ref := push(t, home.address)
	ctx, cancel := context.WithCancel(t.Context())
	home.does(func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	})
	second := newRegistry(t)
	o := fetch.Origin{Ref: ref, Endpoints: []fetch.Endpoint{{Ref: ref}, {Ref: second.ref()}}}
	if _, err := sourcetest.New(t, nil).Read(ctx, o, oci.DigestOf([]byte("x")), true); err == nil {
		t.Error("nothing failed")
	}
	if len(second.matching("")) != 0 {
		t.Error("the next place was asked after all")
	}
}
