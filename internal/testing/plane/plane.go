// Package plane starts managers for tests. Use package env in new tests.
package plane

import (
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// Start runs a manager with the content until the test ends, and returns a client.
func Start(t testing.TB, content controller.Content) client.Client {
	t.Helper()
	cfg := cluster.Start(t)
	Run(t, cfg, content)
	return env.NewClient(t, cfg)
}

// Run starts a manager and returns when it is ready. The returned function stops it.
func Run(t testing.TB, cfg *rest.Config, content controller.Content, more ...func(*controller.Options)) (stop func()) {
	t.Helper()
	o := controller.Options{Config: cfg, Content: content}
	for _, change := range more {
		change(&o)
	}
	return (&env.Env{Config: cfg}).RunManager(t, o).Stop
}

// Client returns a client for packages and for the kinds of Kubernetes that they contain.
func Client(t testing.TB, cfg *rest.Config) client.Client {
	t.Helper()
	return env.NewClient(t, cfg)
}
