package env

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// Manager is a package manager in the process of a test.
type Manager struct {
	ready chan struct{}
	ended chan struct{}
	err   error // valid after ended is closed
	stop  func()
}

// StartManager starts a manager and returns at once. It runs until the test ends or it is
// stopped. The configuration defaults to the administrator's, and nothing is logged by default.
func (e *Env) StartManager(t testing.TB, o controller.Options) *Manager {
	t.Helper()
	if o.Config == nil {
		o.Config = e.Config
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &Manager{ready: make(chan struct{}), ended: make(chan struct{})}
	o.Ready = sync.OnceFunc(func() { close(m.ready) })
	go func() {
		defer close(m.ended)
		m.err = controller.Run(ctx, o)
	}()
	m.stop = sync.OnceFunc(func() {
		cancel()
		<-m.ended
		if m.err != nil && !errors.Is(m.err, context.Canceled) {
			t.Errorf("manager: %v", m.err)
		}
	})
	t.Cleanup(m.stop)
	return m
}

// RunManager is like [Env.StartManager], and returns when the manager is ready.
func (e *Env) RunManager(t testing.TB, o controller.Options) *Manager {
	t.Helper()
	m := e.StartManager(t, o)
	m.WaitReady(t)
	return m
}

// WaitReady waits until the controllers of the manager run.
func (m *Manager) WaitReady(t testing.TB) {
	t.Helper()
	select {
	case <-m.ready:
	case <-m.ended:
		t.Fatalf("the manager did not start: %v", m.err)
	}
}

// Stop stops the manager and waits for its end. Further calls have no effect.
func (m *Manager) Stop() { m.stop() }

// Content is a package cache in a directory, and the source of content that reads it.
type Content struct {
	*fetch.Source
	Cache *cache.Cache

	close func()
}

// OpenContent opens the package cache below a directory. It is closed when the test ends, or
// before.
func OpenContent(t testing.TB, dir string, o remote.Options) *Content {
	t.Helper()
	packages, err := cache.Open(filepath.Join(dir, "packages"), cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &Content{Cache: packages, Source: fetch.NewSource(fetch.Options{Store: packages.Store(), Names: packages, Remote: o})}
	c.close = sync.OnceFunc(func() {
		c.Source.Close()
		if err := packages.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(c.close)
	return c
}

// Close closes the source and the cache. Further calls have no effect.
func (c *Content) Close() { c.close() }

// Options returns the options of a manager that installs this content.
func (c *Content) Options() controller.Options {
	return controller.Options{Content: c.Source, Images: c.Source, InUse: c.Cache.Use}
}
