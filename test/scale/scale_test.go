// Package scale_test installs many packages at once, some of which cannot be installed.
package scale_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/usage"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

const (
	// limit is for a busy machine; an idle one needs half a minute.
	limit = 5 * time.Minute
	// atOnce is the number of concurrent calls that create and delete packages.
	atOnce = 20
	// mostMemory bounds the memory of the manager at any time, in bytes.
	mostMemory = 160 << 20
)

// Of 200 packages that are created at once, the valid ones are installed, and the others report the
// reason. A package that is created later is installed while others are retried. When all packages are
// deleted at once, no object remains.
//
// hardening: J11
func TestManyPackages(t *testing.T) {
	lane.Full(t, "internal/apply/limiter.TestConcurrencyFallsUnderLoadAndRecovers")
	e := env.New(t)
	registry, c := e.Registry, e.Client
	packages := everything(t, registry)
	m := program.Start(t, program.Build(t), cluster.Kubeconfig(t), t.TempDir())

	started := time.Now()
	atOnceEach(t, packages, func(ctx context.Context, e expected) error { return c.Create(ctx, e.pkg) })
	t.Logf("%d packages created after %s", len(packages), since(started))
	settle(t, c, packages, started)
	isAlone(t, c, packages)
	memory(t, m, "with all packages")

	late := time.Now()
	ref := e.Push(t, "scale/late", "v1.0.0", meta(v1.ProviderKind, "late")+definition("late"))
	one := []expected{{pkg: named(v1.ProviderKind, "late", ref)}}
	if err := c.Create(t.Context(), one[0].pkg); err != nil {
		t.Fatal(err)
	}
	settle(t, c, one, late)

	started = time.Now()
	atOnceEach(t, append(packages, one...), func(ctx context.Context, e expected) error { return c.Delete(ctx, e.pkg) })
	gone(t, c, started)
	memory(t, m, "after everything was deleted")
	m.Stop(t)
}

// rarely limits the evaluation of a condition to twice a second, because reading hundreds of packages
// loads the API server.
func rarely(condition func() (string, bool)) func() (string, bool) {
	var last time.Time
	var seen string
	return func() (string, bool) {
		if time.Since(last) < time.Second/2 {
			return seen, false
		}
		var ok bool
		seen, ok = condition()
		last = time.Now()
		return seen, ok
	}
}

func since(t time.Time) time.Duration { return time.Since(t).Round(10 * time.Millisecond) }

func atOnceEach(t *testing.T, packages []expected, f func(context.Context, expected) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atOnce)
	for _, e := range packages {
		group.Go(func() error { return f(ctx, e) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// settle waits until every package has its expected result.
func settle(t *testing.T, c client.Client, packages []expected, started time.Time) {
	t.Helper()
	after := map[string]time.Duration{}
	wait.Until(t, limit, "all packages have settled", rarely(func() (string, bool) {
		now, err := installed(t.Context(), c)
		if err != nil {
			return err.Error(), false
		}
		var waiting []string
		for _, e := range packages {
			name := e.pkg.GetName()
			if _, done := after[name]; done {
				continue
			}
			if why := e.differs(now); why != "" {
				waiting = append(waiting, name+": "+why)
				continue
			}
			after[name] = time.Since(started)
		}
		return fmt.Sprintf("%d are left; %s", len(waiting), strings.Join(waiting[:min(5, len(waiting))], "; ")),
			len(waiting) == 0
	}))
	var good, bad []time.Duration
	for _, e := range packages {
		if e.fails == nil {
			good = append(good, after[e.pkg.GetName()])
		} else {
			bad = append(bad, after[e.pkg.GetName()])
		}
	}
	t.Logf("settled: of the good ones %s; of the bad ones %s", spread(good), spread(bad))
}

func spread(times []time.Duration) string {
	if len(times) == 0 {
		return "none"
	}
	slices.Sort(times)
	round := func(i int) time.Duration { return times[i].Round(10 * time.Millisecond) }
	return fmt.Sprintf(
		"%d, the first after %s, half after %s, the last after %s", len(times), round(0), round(len(times)/2),
		round(len(times)-1),
	)
}

// installed returns all packages of the cluster by their names.
func installed(ctx context.Context, c client.Client) (map[string]v1.Package, error) {
	out := map[string]v1.Package{}
	for _, kind := range v1.PackageKinds() {
		list := v1.NewPackageList(kind)
		if err := c.List(ctx, list); err != nil {
			return nil, err
		}
		for _, p := range list.Packages() {
			out[p.GetName()] = p
		}
	}
	return out, nil
}

// differs returns the difference from the expected result, or an empty string.
func (e expected) differs(now map[string]v1.Package) string {
	p, ok := now[e.pkg.GetName()]
	switch {
	case !ok:
		return "does not exist"
	case e.fails != nil:
		return failsNot(p, *e.fails)
	case e.rival == "" || isHealthy(p):
		return isNot(p)
	}
	// One of a pair may not be installed, and must report the conflict.
	if rival, ok := now[e.rival]; !ok || !isHealthy(rival) {
		return "neither it nor its rival is installed"
	}
	return failsNot(p, conflict)
}

func isHealthy(p v1.Package) bool {
	return p.GetCondition(v1.TypeHealthy).Status == corev1.ConditionTrue &&
		p.GetCondition(v1.TypeReady).Status == corev1.ConditionTrue
}

func isNot(p v1.Package) string {
	if isHealthy(p) {
		return ""
	}
	return "not healthy: " + p.GetCondition(v1.TypeReady).Message
}

// failsNot returns the difference from the expected failure, or an empty string. Errors that may be
// temporary are retried; a package with any other error is stalled.
func failsNot(p v1.Package, why errcode.Code) string {
	ready, stalled := p.GetCondition(v1.TypeReady), p.GetCondition(v1.TypeStalled)
	switch {
	case isHealthy(p):
		return "healthy, want failure with " + why.Name
	case ready.Status != corev1.ConditionFalse || ready.Reason != v1.ConditionReason(why.Name) || ready.Message == "":
		return fmt.Sprintf("does not fail with %s: %s %s", why.Name, ready.Reason, ready.Message)
	case why.Class.Name != errcode.Unavailable.Name && stalled.Status != corev1.ConditionTrue:
		return "is not stalled"
	case why.Class.Name == errcode.Unavailable.Name && stalled.Status == corev1.ConditionTrue:
		return "is stalled"
	}
	return ""
}

// isAlone fails if both packages of a pair are installed, or if the message of the other one does not
// name the first.
func isAlone(t *testing.T, c client.Client, packages []expected) {
	t.Helper()
	now, err := installed(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range packages {
		if e.rival == "" {
			continue
		}
		one, other := now[e.pkg.GetName()], now[e.rival]
		if isHealthy(one) == isHealthy(other) {
			t.Errorf("%s and %s: want exactly one that is installed", one.GetName(), other.GetName())
		}
		if why := one.GetCondition(v1.TypeReady).Message; !isHealthy(one) && !strings.Contains(why, other.GetName()) {
			t.Errorf("the message of %s does not name %s, which owns its object: %s", one.GetName(), other.GetName(), why)
		}
	}
}

func memory(t *testing.T, m *program.Manager, when string) {
	t.Helper()
	u, err := usage.Of(m.PID())
	if err != nil {
		t.Logf("memory was not measured: %v", err)
		return
	}
	t.Logf(
		"the manager holds %d MiB %s, and held %d MiB at most; it used %s of processor time", u.Resident>>20, when,
		u.Peak>>20, u.CPU,
	)
	if u.Peak > mostMemory {
		t.Errorf("the manager held %d MiB, want at most %d", u.Peak>>20, mostMemory>>20)
	}
}

// kinds lists the kinds of objects in the packages.
var kinds = []schema.GroupVersionKind{
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "apiextensions.crossplane.io", Version: "v2", Kind: "CompositeResourceDefinition"},
	{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "Composition"},
}

// gone waits until no package, revision, object or Lock entry remains.
func gone(t *testing.T, c client.Client, started time.Time) {
	t.Helper()
	wait.Until(t, limit, "nothing is left", rarely(func() (string, bool) {
		left, err := remains(t.Context(), c)
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%d: %s", len(left), strings.Join(left[:min(5, len(left))], ", ")), len(left) == 0
	}))
	t.Logf("nothing is left %s after everything was deleted", since(started))
}

func remains(ctx context.Context, c client.Client) ([]string, error) {
	var left []string
	for _, kind := range v1.PackageKinds() {
		p, list := v1.NewPackage(kind), v1.NewPackageList(kind)
		revisions := p.NewRevisionList()
		if err := c.List(ctx, list); err != nil {
			return nil, err
		}
		if err := c.List(ctx, revisions); err != nil {
			return nil, err
		}
		for _, p := range list.Packages() {
			left = append(left, kind+" "+p.GetName())
		}
		for _, rev := range revisions.Revisions() {
			left = append(left, kind+"Revision "+rev.GetName())
		}
	}
	for _, kind := range kinds {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(ctx, &list); err != nil {
			return nil, err
		}
		for _, o := range list.Items {
			if strings.HasSuffix(o.Name, "."+domain) {
				left = append(left, kind.Kind+" "+o.Name)
			}
		}
	}
	var lock v1beta1.Lock
	if err := c.Get(ctx, client.ObjectKey{Name: v1beta1.LockName}, &lock); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	for _, p := range lock.Packages {
		left = append(left, "an entry of the Lock for "+p.Name)
	}
	return left, nil
}
