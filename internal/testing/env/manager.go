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
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen/setup"
	"github.com/xpkg-dev/xpkg/internal/fetch"
)

// Manager is a package manager in the process of a test.
type Manager struct {
	ready chan struct{}
	ended chan struct{}
	err   error // valid after ended is closed
	close func() error
}

// Launch starts a manager that runs until it is closed, for an environment that several tests
// share. It does not log by default.
func Launch(o controller.Options) *Manager {
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
	m.close = sync.OnceValue(func() error {
		cancel()
		<-m.ended
		if errors.Is(m.err, context.Canceled) {
			return nil
		}
		return m.err
	})
	return m
}

// StartManager starts a manager and returns at once. The manager runs until the test ends or the
// manager is stopped. The configuration defaults to the administrator's. The manager does not log
// by default.
func (e *Env) StartManager(t testing.TB, o controller.Options) *Manager {
	t.Helper()
	if o.Config == nil {
		o.Config = e.Config
	}
	m := Launch(o)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("manager: %v", err)
		}
	})
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

// Stop stops the manager and waits until it has ended. The test that started the manager reports
// its error. Further calls have no effect.
func (m *Manager) Stop() { _ = m.Close() }

// Close is like [Manager.Stop], and returns the error of the manager.
func (m *Manager) Close() error { return m.close() }

// Content is a package cache in a directory, and the source of content that reads it.
type Content struct {
	*fetch.Source
	Cache *cache.Cache

	close func() error
}

// NewContent opens the package cache in a directory, and a source with options that uses the store
// and the names of the cache.
func NewContent(dir string, o fetch.Options) (*Content, error) {
	packages, err := cache.Open(dir, cache.Options{})
	if err != nil {
		return nil, err
	}
	o.Store, o.Names = packages.Store(), packages
	c := &Content{Cache: packages, Source: fetch.NewSource(o)}
	c.close = sync.OnceValue(func() error {
		c.Source.Close()
		return packages.Close()
	})
	return c, nil
}

// OpenContent is like [NewContent] for the directory "packages" of dir. The content is closed when
// the test ends, unless the test closes it earlier.
func OpenContent(t testing.TB, dir string, o fetch.Options) *Content {
	t.Helper()
	c, err := NewContent(filepath.Join(dir, "packages"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Close closes the source and the cache. Further calls have no effect.
func (c *Content) Close() error { return c.close() }

// Options returns the options of a manager that installs this content.
func (c *Content) Options() controller.Options {
	return controller.Options{
		Content: c.Source, Images: c.Source, InUse: c.Cache.Use, FirstGeneration: setup.Extension(firstgen.Options{}),
	}
}
