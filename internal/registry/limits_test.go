package registry_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/limit"
	"github.com/xpkg-dev/xpkg/internal/registry/pages"
	"github.com/xpkg-dev/xpkg/internal/testing/hold"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// TestNoClientExhaustsAServer makes a user without special permissions, and clients that are not logged in, hold
// everything that clients can hold, far beyond the limits. Other users go on working, and the server has a bounded
// number of goroutines, which end.
func TestNoClientExhaustsAServer(t *testing.T) {
	limits := limit.Limits{Connections: 48, Requests: 32, Manifests: 8, Work: 8, Uploads: 16, Repositories: 1000}
	s := start(t, func(o *registry.Options) {
		o.Limits, o.Pages, o.MaxUpload = &limits, pages.New, 64<<20
		configured(t, "rules:\n- {prefix: acme, owners: [alice]}\n- {prefix: mal, owners: [mallory]}\n")(o)
	})
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, served := &http.Server{Handler: s}, make(chan error, 1)
	go func() { served <- s.Serve(server, l) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	s.waitUntil(t, "the index is ready", func() bool { return s.Site().Healthy() == nil })
	alice := hold.Client{
		Address: l.Addr().String(), Token: s.token(t, "alice", []string{"*"}, access.Actions()...), Prefix: "acme",
	}
	alice.Pull = alice.PushBlob(t)
	mallory := hold.Client{
		Address: alice.Address, Token: s.token(t, "mallory", []string{"*"}, access.Actions()...), Prefix: "mal",
		Pull: alice.Pull,
	}
	anonymous := mallory
	anonymous.Token = ""
	alice.Check(t, "before")
	base := runtime.NumGoroutine()
	for _, h := range hold.Holders {
		for who, client := range map[string]hold.Client{"a user": mallory, "an anonymous client": anonymous} {
			const times = 300
			var release []func()
			for i := range times {
				release = append(release, h.Hold(t, client, i))
			}
			during := h.Name + " of " + who
			alice.Check(t, during)
			if n, most := runtime.NumGoroutine()-base, 6*limits.Connections; n > most {
				t.Errorf("%s: %d goroutines, want at most %d", during, n, most)
			}
			for _, r := range release {
				r()
			}
			wait.Until(t, deadline, "the goroutines end after "+during, func() (string, bool) {
				n := runtime.NumGoroutine() - base
				return fmt.Sprint(n), n <= 10
			})
		}
	}
}

// TestLimitsOfNewRepositories limits the repositories that a user creates with uploads alone.
func TestLimitsOfNewRepositories(t *testing.T) {
	t.Parallel()
	limits := limit.For(1<<16, 1<<32, 2)
	limits.Repositories = 8
	s := start(t, func(o *registry.Options) { o.Limits = &limits })
	post := func(i int) *http.Response {
		return s.do(t, http.MethodPost, fmt.Sprintf("/v2/acme/new%dx/blobs/uploads/", i), s.admin, nil)
	}
	for i := range 2 {
		if resp := post(i); resp.StatusCode != http.StatusAccepted {
			t.Fatal(resp.StatusCode)
		}
	}
	resp := post(2)
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a third new repository: %d %v", resp.StatusCode, resp.Header)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "registry", "acme", "new2x")); err == nil {
		t.Error("the refused repository has a folder")
	}
	if resp := post(0); resp.StatusCode != http.StatusAccepted {
		t.Errorf("another upload to a new repository: %d", resp.StatusCode)
	}
}
