package fetch_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/clock"
	"github.com/xpkg-dev/xpkg/internal/testing/sourcetest"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// Many who ask at the same time are content with one answer.
func TestOneRequestForAll(t *testing.T) {
	home := newRegistry(t)
	ref := push(t, home.address)
	home.reset()
	source := sourcetest.New(t, nil)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if _, err := source.Resolve(t.Context(), fetch.Plain(ref), time.Minute); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(home.matching("")); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestResolvedDigestsExpire(t *testing.T) {
	home := newRegistry(t)
	ref := push(t, home.address)
	c := clock.New()
	source := sourcetest.New(t, func(o *fetch.Options) { o.Now = c.Now })
	mine := fetch.Origin{Ref: ref, Endpoints: []fetch.Endpoint{{Ref: ref, Keychain: keychain(t, home.address, "me")}}}
	for i, step := range []struct {
		after  time.Duration
		origin fetch.Origin
		maxAge time.Duration
		fails  bool
		asked  int
	}{
		{0, fetch.Plain(ref), time.Minute, false, 1},
		{59 * time.Second, fetch.Plain(ref), time.Minute, false, 0},
		{0, fetch.Plain(ref), 30 * time.Second, false, 1},
		{0, fetch.Plain(ref), 0, false, 1},
		{0, mine, time.Minute, false, 1}, // Other credentials may see something else.
		{0, fetch.Plain(ref.WithDigest(oci.DigestOf([]byte("x")))), 0, false, 0},
		{time.Minute, fetch.Plain(ref), time.Minute, true, 1},
		{4 * time.Second, fetch.Plain(ref), time.Minute, true, 0},
		{0, fetch.Plain(ref), 0, true, 1},
		{time.Second, fetch.Plain(ref), time.Minute, true, 0},
		{5 * time.Second, fetch.Plain(ref), time.Minute, false, 1},
	} {
		c.Add(step.after)
		home.does(nil)
		if step.fails {
			home.does(answer(http.StatusForbidden))
		}
		home.reset()
		_, err := source.Resolve(t.Context(), step.origin, step.maxAge)
		if step.fails != errors.Is(err, remote.ErrUnauthorized) || !step.fails && err != nil {
			t.Errorf("step %d: got %v", i, err)
		}
		// A failed HEAD is asked again as GET.
		if asked := min(1, len(home.matching("/manifests/"))); asked != step.asked {
			t.Errorf("step %d: %d requests, want %d", i, asked, step.asked)
		}
	}
}

// A throttled registry receives no request with the same credentials until the time that it
// named. Changed credentials take effect at once.
//
// hardening: A12
func TestThrottled(t *testing.T) {
	home := newRegistry(t)
	ref := push(t, home.address)
	c := clock.New()
	source := sourcetest.New(t, func(o *fetch.Options) { o.Now = c.Now })
	home.does(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "" {
			return false
		}
		w.Header().Set("Retry-After", "90")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	home.reset()
	for range 5 {
		_, err := source.Resolve(t.Context(), fetch.Plain(ref), 0)
		if at, ok := remote.RetryAt(err); !errors.Is(err, remote.ErrThrottled) || !ok || at != c.Now().Add(90*time.Second) {
			t.Fatalf("got %v, to be tried at %v (%v)", err, at, ok)
		}
	}
	if n := len(home.matching("")); n != 1 {
		t.Errorf("%d requests to a registry that is throttled", n)
	}
	home.does(func(w http.ResponseWriter, r *http.Request) bool { return wants("me")(w, r) })
	if _, err := resolve(t, source, fetch.Endpoint{Ref: ref, Keychain: keychain(t, home.address, "me")}); err != nil {
		t.Errorf("with credentials: %v", err)
	}
	home.does(nil)
	c.Add(90 * time.Second)
	if _, err := source.Resolve(t.Context(), fetch.Plain(ref), 0); err != nil {
		t.Errorf("after its time: %v", err)
	}
}

// Fifty packages of a registry that does not answer do not each wait for it,
// whatever their credentials.
func TestDeadRegistry(t *testing.T) {
	c := clock.New()
	var dials atomic.Int64
	source := sourcetest.New(t, func(o *fetch.Options) {
		o.Now = c.Now
		o.Remote.Dial = func(context.Context, string, string) (net.Conn, error) {
			dials.Add(1)
			return nil, errors.New("nobody is there")
		}
	})
	ask := func() error {
		var last error
		for i := range 50 {
			ref := oci.MustParseReference(name + "/acme/pkg:v1.0.0")
			ref.Tag += string(rune('a' + i%26))
			_, last = resolve(t, source, fetch.Endpoint{Ref: ref, Keychain: keychain(t, name, ref.Tag)})
			if !errors.Is(last, remote.ErrRegistryUnavailable) {
				t.Fatalf("got %v", last)
			}
		}
		return last
	}
	err := ask()
	at, ok := remote.RetryAt(err)
	if n := dials.Load(); n > 3 || !ok {
		t.Errorf("%d dials; to be tried at %v (%v)", n, at, ok)
	}
	dials.Store(0)
	c.Add(at.Sub(c.Now()))
	if again := ask(); again.Error() != err.Error() {
		t.Errorf("the failure changed its words: %q and %q", err, again)
	}
	if n := dials.Load(); n != 1 {
		t.Errorf("%d dials after the pause, want 1", n)
	}
}
