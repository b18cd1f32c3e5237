// Package plane provides tests with a control plane: the API server of the test binary, and a
// package manager that belongs to the test.
package plane

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
)

// Start runs a manager with the content until the test ends, and returns a client for
// packages, revisions and CRDs. Tests that use it must not run in parallel, because two
// managers would share the cluster.
func Start(t testing.TB, content controller.Content) client.Client {
	t.Helper()
	cfg := cluster.Start(t)
	t.Cleanup(Run(t, cfg, content))
	return Client(t, cfg)
}

// Run starts a manager and returns when it is ready. The returned function stops the manager
// and waits for its end.
func Run(t testing.TB, cfg *rest.Config, content controller.Content, more ...func(*controller.Options)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	o := controller.Options{Config: cfg, Content: content, Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) }}
	for _, how := range more {
		how(&o)
	}
	go func() { ended <- controller.Run(ctx, o) }()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		t.Fatalf("the manager did not start: %v", err)
	}
	return func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("manager: %v", err)
		}
	}
}

// Client makes a client for packages, revisions and definitions.
func Client(t testing.TB, cfg *rest.Config) client.Client {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
