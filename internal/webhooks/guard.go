package webhooks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/restmapper"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const (
	// DefaultInterval is the pause between two rounds of probes.
	DefaultInterval = 5 * time.Second
	// failureThreshold is the number of consecutive rounds in which an endpoint must fail
	// before its configurations are deleted. A runtime that restarts keeps them.
	failureThreshold = 3
	// secondAttempt is the pause of DeleteNotServing before it repeats failed probes.
	secondAttempt = 250 * time.Millisecond
	// probesAtOnce is the maximum number of configurations that are probed at the same time.
	probesAtOnce = 16
	// requestTimeout limits each request to the API server.
	requestTimeout = 10 * time.Second
)

// Guard deletes the webhook configurations of packages whose endpoint does not serve, or that could
// prevent the removal of their package. The API server calls no webhooks for webhook
// configurations, so no webhook can prevent their deletion.
type Guard struct {
	client client.Client
	// watched holds the webhook configurations while the guard runs, so that an interval without one costs no request.
	watched cache.Cache
	prober  Prober
	log     *slog.Logger
}

// NewGuard returns a guard for a cluster. Remote is the field of [Prober].
func NewGuard(cfg *rest.Config, remote bool, log *slog.Logger) (*Guard, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(
		admissionregistrationv1.AddToScheme(scheme), corev1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme),
	); err != nil {
		return nil, err
	}
	mapper := restmapper.New(scheme)
	watched, err := cache.New(cfg, cache.Options{
		Scheme: scheme, Mapper: mapper, DefaultTransform: cache.TransformStripManagedFields(),
		DefaultWatchErrorHandler: func(ctx context.Context, _ *toolscache.Reflector, err error) {
			log.DebugContext(ctx, "webhook configurations cannot be watched", "error", err.Error())
		},
	})
	if err != nil {
		return nil, fmt.Errorf("guard of webhooks: %w", err)
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = requestTimeout
	c, err := client.New(cfg, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("guard of webhooks: %w", err)
	}
	return &Guard{client: c, watched: watched, prober: Prober{Reader: c, Remote: remote}, log: log}, nil
}

// Unblock deletes the webhook configurations of packages whose endpoint does not serve, in the
// cluster of a kubeconfig file. The process must be able to reach the endpoints.
func Unblock(ctx context.Context, kubeconfig string, log io.Writer) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	guard, err := NewGuard(config, false, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		return err
	}
	return guard.DeleteNotServing(ctx)
}

// DeleteNotServing deletes the webhook configurations of packages whose endpoint fails two probes
// in a row. Call it first, because such a webhook may block every other write.
func (g *Guard) DeleteNotServing(ctx context.Context) error {
	all, err := configurations(ctx, g.client)
	if err != nil {
		return err
	}
	failed, _ := g.notServing(ctx, all)
	if len(failed) == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(secondAttempt):
	}
	failed, reasons := g.notServing(ctx, failed)
	return g.delete(ctx, failed, reasons)
}

// Run watches the webhook configurations of packages, probes them at an interval until ctx is canceled, and deletes
// those whose endpoint fails in several consecutive rounds. It must be called only once.
func (g *Guard) Run(ctx context.Context, interval time.Duration) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { _ = g.watched.Start(ctx) }) // It fails only if it is started twice.
	failures := map[types.UID]int{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval + rand.N(interval/10+1)):
		}
		all, err := g.current(ctx)
		if err == nil {
			failures, err = g.probeAndDelete(ctx, all, failures)
		}
		if err != nil && ctx.Err() == nil {
			g.log.DebugContext(ctx, "webhook configurations of packages could not be probed", "error", err.Error())
		}
	}
}

// probeAndDelete probes configurations once, and deletes configurations that have failed in failureThreshold
// consecutive rounds. It returns the number of consecutive failures of each configuration.
func (g *Guard) probeAndDelete(
	ctx context.Context, all []configuration, before map[types.UID]int,
) (map[types.UID]int, error) {
	after := map[types.UID]int{}
	failed, reasons := g.notServing(ctx, all)
	var errs []error
	for i, c := range failed {
		after[c.GetUID()] = before[c.GetUID()] + 1
		if after[c.GetUID()] >= failureThreshold {
			errs = append(errs, g.delete(ctx, failed[i:i+1], reasons[i:i+1]))
		}
	}
	return after, errors.Join(errs...)
}

// delete deletes configurations, unless they have changed since they were read.
func (g *Guard) delete(ctx context.Context, all []configuration, reasons []error) error {
	var errs []error
	for i, c := range all {
		err := g.client.Delete(ctx, c.Object, client.Preconditions{
			UID: new(c.GetUID()), ResourceVersion: new(c.GetResourceVersion()),
		})
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("delete %s %s: %w", c.kind, c.GetName(), err))
			continue
		}
		g.log.WarnContext(
			ctx, "deleted a webhook configuration of a package", "kind", c.kind, "name", c.GetName(), "reason",
			reasons[i].Error(),
		)
	}
	return errors.Join(errs...)
}

// notServing probes configurations concurrently, and returns the failing ones, with the reasons. A
// configuration whose state is unknown does not fail.
func (g *Guard) notServing(ctx context.Context, all []configuration) (failed []configuration, reasons []error) {
	results := make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(probesAtOnce)
	for i, c := range all {
		group.Go(func() error {
			results[i] = g.check(ctx, c)
			return nil
		})
	}
	_ = group.Wait() // The failures are in results.
	for i, err := range results {
		if errors.Is(err, ErrNotServing) || errors.Is(err, errNotExempt) {
			failed, reasons = append(failed, all[i]), append(reasons, err)
		}
	}
	return failed, reasons
}

// errNotExempt is the reason to delete a configuration that an earlier manager or another client
// wrote.
var errNotExempt = errors.New(
	"it covers packages, transactions or Leases without the match condition that exempts them",
)

// check returns errNotExempt, or the first failure among the endpoints of a configuration.
func (g *Guard) check(ctx context.Context, c configuration) error {
	if !c.exempts {
		return errNotExempt
	}
	for _, e := range c.endpoints {
		if err := g.prober.Check(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// configuration is a webhook configuration of a package.
type configuration struct {
	client.Object
	kind      string
	endpoints []Endpoint
	// exempts reports whether no webhook of the configuration can prevent the removal of its package.
	exempts bool
}

// current returns the watched webhook configurations of packages. It fails if they cannot be listed for requestTimeout.
func (g *Guard) current(ctx context.Context) ([]configuration, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return configurations(ctx, g.watched)
}

// configurations lists the webhook configurations of packages.
func configurations(ctx context.Context, reader client.Reader) ([]configuration, error) {
	var validating admissionregistrationv1.ValidatingWebhookConfigurationList
	var mutating admissionregistrationv1.MutatingWebhookConfigurationList
	err := errors.Join(reader.List(ctx, &validating), reader.List(ctx, &mutating))
	if err != nil {
		return nil, fmt.Errorf("list webhook configurations: %w", err)
	}
	var out []configuration
	add := func(kind string, o client.Object, clients []admissionregistrationv1.WebhookClientConfig, exempts bool) {
		if ofPackage(o) {
			out = append(out, configuration{o, kind, endpointsOf(clients), exempts})
		}
	}
	for i := range validating.Items {
		o := &validating.Items[i]
		var clients []admissionregistrationv1.WebhookClientConfig
		exempts := true
		for _, w := range o.Webhooks {
			clients = append(clients, w.ClientConfig)
			exempts = exempts && desired.Exempts(w.Rules, w.MatchConditions)
		}
		add("ValidatingWebhookConfiguration", o, clients, exempts)
	}
	for i := range mutating.Items {
		o := &mutating.Items[i]
		var clients []admissionregistrationv1.WebhookClientConfig
		exempts := true
		for _, w := range o.Webhooks {
			clients = append(clients, w.ClientConfig)
			exempts = exempts && desired.Exempts(w.Rules, w.MatchConditions)
		}
		add("MutatingWebhookConfiguration", o, clients, exempts)
	}
	return out, nil
}

// ofPackage reports whether the manager wrote an object for a package.
func ofPackage(o metav1.Object) bool {
	return o.GetAnnotations()[plan.ContentDigestAnnotation] != "" &&
		slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
			return strings.HasPrefix(r.APIVersion, v1.Group+"/")
		})
}

// endpointsOf returns the distinct Services that webhooks call. A webhook with a URL has
// none: the manager writes no such webhook.
func endpointsOf(clients []admissionregistrationv1.WebhookClientConfig) []Endpoint {
	var out []Endpoint
	for _, c := range clients {
		if c.Service == nil {
			continue
		}
		e := Endpoint{Namespace: c.Service.Namespace, Name: c.Service.Name, Port: 443, CABundle: string(c.CABundle)}
		if c.Service.Port != nil {
			e.Port = *c.Service.Port
		}
		if !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	return out
}
