// Command provider-hello is the runtime of the example provider: it writes greetings into
// the status of Greeting objects.
//
// It finds the API server like any controller: by the flag --kubeconfig, the environment
// variable KUBECONFIG, the service account of its pod, or ~/.kube/config, in this order.
// It serves metrics on METRICS_BIND_ADDRESS (":8080" unless set, "0" for none), and
// /healthz and /readyz on HEALTH_PROBE_BIND_ADDRESS (":8081" unless set, "0" for none).
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/xpkg-dev/xpkg/examples/provider-hello/api/v1alpha1"
)

func main() {
	flag.Parse() // Only for --kubeconfig, which the client library defines.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, "provider-hello:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, getenv func(string) string) error {
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("cannot find an API server: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                server.Options{BindAddress: orDefault(getenv("METRICS_BIND_ADDRESS"), ":8080")},
		HealthProbeBindAddress: orDefault(getenv("HEALTH_PROBE_BIND_ADDRESS"), ":8081"),
	})
	if err != nil {
		return err
	}
	for _, add := range []func(string, healthz.Checker) error{mgr.AddHealthzCheck, mgr.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return err
		}
	}
	r := &reconciler{client: mgr.GetClient()}
	if err := r.setup(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
