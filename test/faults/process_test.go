package faults_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/fault"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// This file is all that knows how a package manager is made.

const (
	// patience is how long a registry may be silent.
	patience = 500 * time.Millisecond
	// fastEnough makes the size of an answer no reason to wait longer for it.
	fastEnough = 64 << 20
)

// process is a package manager whose every call goes through a network. Like a
// container it is started again when it ends by itself.
type process struct {
	stop func()
	// ready is closed once the controllers run.
	ready chan struct{}
}

// startProcess starts a package manager, with what is left in the store of those
// before it.
func startProcess(t testing.TB, cfg *rest.Config, n *fault.Network, registry, storeDir string, log slog.Handler) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{ready: make(chan struct{})}
	wrapped, leaving := rest.CopyConfig(cfg), &atomic.Bool{}
	wrapped.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &exit{passed: n.Transport(fault.Cluster, next), next: next, open: leaving}
	})
	ended := make(chan struct{})
	var once sync.Once
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			err := runOnce(ctx, wrapped, n, registry, storeDir, log, func() { once.Do(func() { close(p.ready) }) })
			if err != nil && !errors.Is(err, context.Canceled) && ctx.Err() == nil {
				slog.New(log).Error("the manager ended", "error", err)
				pause(ctx)
			}
		}
	}()
	p.stop = func() {
		cancel() // Again is no harm.
		select {
		case <-ended:
		case <-time.After(500 * time.Millisecond):
			leaving.Store(true)
			<-ended
		}
	}
	return p
}

// exit lets a manager end that was cut off before it had read what it watches. The
// controller library does not end before that, but the process that the manager
// stands for is dead. It may only read.
type exit struct {
	passed, next http.RoundTripper
	open         *atomic.Bool
}

// RoundTrip implements [http.RoundTripper].
func (e *exit) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case !e.open.Load():
		return e.passed.RoundTrip(r)
	case r.Method == http.MethodGet:
		return e.next.RoundTrip(r)
	}
	return nil, fault.ErrKilled
}

// pause is what a supervisor waits for before it starts a process again.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

func runOnce(ctx context.Context, cfg *rest.Config, n *fault.Network, registry, storeDir string, log slog.Handler, ready func()) error {
	store, err := store.Open(storeDir, store.Options{})
	if err != nil {
		return err
	}
	defer store.Close() //nolint:errcheck // The next one to open it says what is wrong.
	source := fetch.NewSource(fetch.Options{Store: store, Remote: remote.Options{
		Transport: patient{n.Transport(fault.Registry, alias{registry})}, Patience: patience, Attempts: 2, MinRate: fastEnough,
	}})
	defer source.Close()
	return controller.Run(ctx, controller.Options{Config: cfg, Content: source, Log: slog.New(log), Ready: ready})
}

// patient waits for answers as long as the transport does that the client of
// registries makes for itself.
type patient struct{ next http.RoundTripper }

var errPatience = errors.New("timeout awaiting response headers")

// RoundTrip implements [http.RoundTripper]. The context ends with that of the
// request: its body is read in it.
func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(patience, func() { cancel(errPatience) })
	res, err := p.next.RoundTrip(r.WithContext(ctx))
	if !timer.Stop() {
		if err == nil {
			_ = res.Body.Close()
		}
		return nil, errPatience
	}
	return res, err
}

// aliasOf is a name of a registry on this machine that no other round uses.
func aliasOf(registry string, n int) string {
	_, port, _ := strings.Cut(registry, ":")
	return fmt.Sprintf("127.1.%d.%d:%s", n/250, 1+n%250, port)
}

// alias leads all names of a registry to it.
type alias struct{ registry string }

// RoundTrip implements [http.RoundTripper].
func (a alias) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = a.registry
	return http.DefaultTransport.RoundTrip(r)
}
