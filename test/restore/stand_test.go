package restore_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci/store"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	corev1 "k8s.io/api/core/v1"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// limit is how long a state may take on a machine that is busy.
const limit = time.Minute

// stand is a cluster, a registry, and whoever works on the cluster: each under a name
// of its own, by which an admission policy can tell it from the garbage collector.
type stand struct {
	cfg *rest.Config
	// client is that of whoever backs up and restores.
	client   client.WithWatch
	registry string
	store    *store.Store
	source   *fetch.Source
}

const (
	restorer       = "restorer"
	packageManager = "package-manager"
)

func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{cfg: cluster.Start(t), registry: cluster.Registry(t)}
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(apiextensionsv1.AddToScheme(scheme), corev1.AddToScheme(scheme), admissionv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	if s.client, err = client.NewWithWatch(s.as(restorer), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	// A new machine has an empty package cache.
	if s.store, err = store.Open(t.TempDir()+"/store", store.Options{}); err != nil {
		t.Fatal(err)
	}
	s.source = fetch.NewSource(fetch.Options{Store: s.store})
	t.Cleanup(func() {
		s.source.Close()
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// as is the configuration of somebody who may do everything, under a name.
func (s *stand) as(user string) *rest.Config {
	cfg := rest.CopyConfig(s.cfg)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters", "system:authenticated"}}
	return cfg
}

// start starts a package manager and returns when it works.
func (s *stand) start(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- controller.Run(ctx, controller.Options{
			Config: s.as(packageManager), Content: s.source, Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) },
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("manager: %v", err)
		}
	})
	t.Cleanup(stop)
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatalf("the manager did not start: %v", err)
	}
	return stop
}

// planner makes plans of what an install would change.
func (s *stand) planner(t *testing.T) *planner.Planner {
	t.Helper()
	c, err := planner.NewCluster(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &planner.Planner{Reader: s.client, Cluster: c, Source: s.source, Namespace: controller.DefaultNamespace}
}

func until(t *testing.T, what string, holds func() (string, bool)) {
	t.Helper()
	wait.Until(t, limit, what, holds)
}
