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
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/fault"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

const (
	// idleTime is the time without a call after which the manager counts as idle.
	idleTime = 500 * time.Millisecond
	// patience is how long the manager waits for a response of a registry.
	patience = 500 * time.Millisecond
	// minRate is so high that the size of a response never extends the patience.
	minRate = 64 << 20
)

// process is a package manager whose calls all pass through a network. Like a container, it is
// restarted when it ends.
type process struct {
	stop func()
	// ready is closed when the controllers run.
	ready chan struct{}
}

// startProcess starts a package manager with the content store of the former process.
func startProcess(
	t testing.TB, cfg *rest.Config, n *fault.Network, registry, storeDir string, log slog.Handler,
) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{ready: make(chan struct{})}
	wrapped, leaving := rest.CopyConfig(cfg), &atomic.Bool{}
	wrapped.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &exitTransport{passed: n.Transport(fault.Cluster, next), next: next, open: leaving}
	})
	ended := make(chan struct{})
	var once sync.Once
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			err := runManager(ctx, wrapped, n, registry, storeDir, log, func() { once.Do(func() { close(p.ready) }) })
			if err != nil && !errors.Is(err, context.Canceled) && ctx.Err() == nil {
				slog.New(log).Error("the manager ended", "error", err)
				waitBeforeRestart(ctx)
			}
		}
	}()
	p.stop = func() {
		cancel() // A second call has no effect.
		select {
		case <-ended:
		case <-time.After(500 * time.Millisecond):
			leaving.Store(true)
			<-ended
		}
	}
	return p
}

// exitTransport lets a manager that was cut off before its caches were filled end: the controller
// library waits for the caches. The process that the manager simulates is dead, so it may only read.
type exitTransport struct {
	passed, next http.RoundTripper
	open         *atomic.Bool
}

// RoundTrip implements [http.RoundTripper].
func (e *exitTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case !e.open.Load():
		return e.passed.RoundTrip(r)
	case r.Method == http.MethodGet:
		return e.next.RoundTrip(r)
	}
	return nil, fault.ErrKilled
}

// waitBeforeRestart waits as a supervisor does before it restarts a process.
func waitBeforeRestart(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

func runManager(
	ctx context.Context, cfg *rest.Config, n *fault.Network, registry, storeDir string, log slog.Handler, ready func(),
) error {
	store, err := store.Open(storeDir, store.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	source := fetch.NewSource(fetch.Options{Store: store, Remote: remote.Options{
		Transport: headerTimeout{n.Transport(fault.Registry, alias{registry})}, Patience: patience, Attempts: 2,
		MinRate: minRate,
	}})
	defer source.Close()
	// A scenario is repeated for every call on the same packages. Its steps stand for those of users, and would soon
	// look like another client that keeps changing the objects.
	unlimited := contention.Limits{Writes: 1 << 20, Window: time.Minute}
	return controller.Run(ctx, controller.Options{
		Config: cfg, Content: source, Log: slog.New(log), Ready: ready, Contention: unlimited,
	})
}

// headerTimeout waits for response headers as long as the default transport of the registry client.
type headerTimeout struct{ next http.RoundTripper }

var errHeaderTimeout = errors.New("timeout awaiting response headers")

// RoundTrip implements [http.RoundTripper]. The context ends with the context of the request,
// because the body is read in it.
func (p headerTimeout) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(patience, func() { cancel(errHeaderTimeout) })
	res, err := p.next.RoundTrip(r.WithContext(ctx))
	if !timer.Stop() {
		if err == nil {
			_ = res.Body.Close()
		}
		return nil, errHeaderTimeout
	}
	return res, err
}

// hostAlias returns a name of a registry on this machine that no other instance uses.
func hostAlias(registry string, n int) string {
	_, port, _ := strings.Cut(registry, ":")
	return fmt.Sprintf("127.1.%d.%d:%s", n/250, 1+n%250, port)
}

// alias sends the requests for all names of a registry to it.
type alias struct{ registry string }

// RoundTrip implements [http.RoundTripper].
func (a alias) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = a.registry
	return http.DefaultTransport.RoundTrip(r)
}
