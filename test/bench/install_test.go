package bench_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci/store"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// An install is one bundle and the manager that installs it.
type install struct {
	*suite
	bundle         bundle
	size, changed  int
	kinds          []schema.GroupResource
	cache          string
	manager        *program.Manager
	first, second  oci.Reference
	pkg, unrelated *v1.Provider
}

// newInstall publishes the bundle, and starts a manager with an empty cache and an unrelated package.
func (s *suite) newInstall(b *testing.B, definitions [][]byte) *install {
	b.Helper()
	bun := s.bundle(definitions)
	next, changed := bun.upgraded(b)
	i := &install{suite: s, bundle: bun, size: len(bun.files), changed: changed, cache: b.TempDir()}
	_, i.kinds = bodies(b, bun.stream())
	i.first = publish.Stream(b, s.registry, bun.packageName(), "v1.0.0", bun.stream())
	i.second = publish.Stream(b, s.registry, bun.packageName(), "v2.0.0", next.stream())
	i.manager = i.start(b)
	i.unrelated = i.create(b, unrelatedName, publish.Stream(b, s.registry, unrelatedName, "v1.0.0", unrelated(1)))
	return i
}

func (i *install) start(b *testing.B) *program.Manager {
	b.Helper()
	return program.Start(b, i.program, i.kubeconfig, i.cache)
}

func (i *install) meter() meter {
	return meter{proxy: i.proxy, server: i.server, client: i.manager.PID()}
}

// coldRead fetches and reads the package as the manager does, into an empty store.
func (i *install) coldRead(b *testing.B) row {
	b.Helper()
	store, err := store.Open(filepath.Join(b.TempDir(), "store"), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	source := fetch.NewSource(fetch.Options{Store: store})
	origin := fetch.Plain(i.first)
	m := i.meter()
	m.quiet(b)
	before, own := m.read(b), usageOf(b, os.Getpid())
	digest, err := source.Resolve(b.Context(), origin, 0)
	if err != nil {
		b.Fatal(err)
	}
	pkg, err := source.Read(b.Context(), origin, digest, true)
	if err != nil {
		b.Fatal(err)
	}
	r := row{
		size: i.size, key: "read", what: "cold read: fetch, parse and check", wall: time.Since(before.at),
		client: usageOf(b, os.Getpid()).CPU - own.CPU,
	}
	r.noise = noise(before, m.read(b))
	if len(pkg.Objects) != i.size {
		b.Errorf("%d objects were read, want %d", len(pkg.Objects), i.size)
	}
	source.Close()
	if err := store.Close(); err != nil {
		b.Error(err)
	}
	return r
}

// install installs the package and waits until it is healthy.
func (i *install) install(b *testing.B) row {
	b.Helper()
	r := i.meter().measure(b, i.size, "xpkg: install, until healthy", func() {
		i.pkg = i.create(b, i.bundle.packageName(), i.first)
		i.isServed(b)
	})
	r.key = "install"
	return r
}

// isServed fails if a kind of a healthy package is not served.
func (i *install) isServed(b *testing.B) {
	b.Helper()
	if missing, err := i.bare.missing(b.Context(), i.kinds); err != nil || missing > 0 {
		b.Errorf("the package is healthy, and %d of its kinds are not served (%v)", missing, err)
	}
}

// afterwards measures operations on an installed package.
func (i *install) afterwards(b *testing.B, installed row) []row {
	b.Helper()
	var rows []row
	add := func(key string, r row, goals []goal) {
		r.key, r.goals = key, goals
		rows = append(rows, r)
	}
	r := i.meter().react(b, i.size, "xpkg: the package is annotated", func() { i.annotate(b, i.pkg) })
	add("annotate", r, unchangedGoals(r))
	rev := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: i.pkg.Status.CurrentRevision}}
	r = i.meter().react(b, i.size, "xpkg: the revision is annotated", func() { i.annotate(b, rev) })
	add("annotate-revision", r, unchangedGoals(r))
	r = i.restart(b)
	add("restart", r, unchangedGoals(r))
	r = i.meter().measure(b, i.size, "xpkg: an unrelated package is upgraded", func() { i.upgradeUnrelated(b, 2) })
	add("unrelated", r, untouchedGoals(r, i.bundle))
	if i.size >= crowdedFrom {
		add("crowd", i.crowd(b), nil)
		rows[len(rows)-1].goals = i.crowdGoals(b)
	}
	r = i.meter().
		measure(b, i.size, "xpkg: upgrade, a tenth changed, until healthy", func() { i.update(b, i.pkg, i.second) })
	add("upgrade", r, upgradeGoals(r, installed, i.changed))
	i.isUpgraded(b)
	return rows
}

// upgradeUnrelated publishes and installs a version of the unrelated package.
func (i *install) upgradeUnrelated(b *testing.B, version int) {
	b.Helper()
	i.update(
		b, i.unrelated, publish.Stream(b, i.registry, unrelatedName, fmt.Sprintf("v%d.0.0", version), unrelated(version)),
	)
}

func (i *install) annotate(b *testing.B, o client.Object) {
	b.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"bench.xpkg.dev/touched":%q}}}`, time.Now())
	if err := i.direct.Patch(b.Context(), o, client.RawPatch(types.MergePatchType, patch)); err != nil {
		b.Fatal(err)
	}
}

// restart stops the manager and starts it again.
func (i *install) restart(b *testing.B) row {
	b.Helper()
	i.manager.Stop(b)
	m := meter{proxy: i.proxy, server: i.server}
	m.quiet(b)
	before := m.read(b)
	i.manager = i.start(b)
	// Subtract the usage of the new process.
	done := m.read(b)
	done.others -= usageOf(b, i.manager.PID()).CPU
	r := i.meter().row(b, before, done, i.size, "xpkg: the manager is restarted")
	r.wall = r.calls.last(r.started).Sub(r.started)
	return r
}

// isUpgraded fails if the changed CRDs are not in the cluster.
func (i *install) isUpgraded(b *testing.B) {
	b.Helper()
	names, err := i.bare.names(b.Context(), i.bundle, changedLabel)
	if err != nil || len(names) != i.changed {
		b.Errorf("%d definitions were changed by the upgrade, want %d (%v)", len(names), i.changed, err)
	}
}

// end measures the removal of the package. Its runtime is active, so the manager deletes the CRDs while the runtime
// runs. Then it stops the manager.
func (i *install) end(b *testing.B) row {
	b.Helper()
	i.manager.Stop(b)
	i.manager = program.Start(b, i.program, i.kubeconfig, i.cache, "--package-runtime", "External")
	i.untilReported(b, i.pkg)
	i.untilReported(b, i.unrelated)
	r := i.meter().measure(b, i.size, "xpkg: uninstall with an active runtime, until gone", func() {
		i.remove(b, i.pkg)
		i.bare.untilGone(b, i.bundle)
	})
	r.key = "removal"
	i.manager.Stop(b)
	return r
}

func (i *install) create(b *testing.B, name string, ref oci.Reference) *v1.Provider {
	b.Helper()
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Package = ref.String()
	if err := i.direct.Create(b.Context(), p); err != nil {
		b.Fatal(err)
	}
	i.untilHealthy(b, p)
	return p
}

func (i *install) update(b *testing.B, p *v1.Provider, ref oci.Reference) {
	b.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"package":%q}}`, ref)
	if err := i.direct.Patch(b.Context(), p, client.RawPatch(types.MergePatchType, patch)); err != nil {
		b.Fatal(err)
	}
	i.untilHealthy(b, p)
}

func (i *install) untilHealthy(b *testing.B, p *v1.Provider) {
	b.Helper()
	wait.Until(b, limit, p.Name+" is healthy", func() (string, bool) {
		ref := p.Spec.Package
		if err := i.direct.Get(b.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		h := p.GetCondition(v1.TypeHealthy)
		return h.Message,
			h.Status == corev1.ConditionTrue && p.Status.CurrentIdentifier == ref && h.ObservedGeneration == p.Generation
	})
}

// remove deletes a package and waits until it is gone.
func (i *install) remove(b *testing.B, p *v1.Provider) {
	b.Helper()
	if err := i.direct.Delete(b.Context(), p); err != nil {
		b.Fatal(err)
	}
	wait.Until(b, limit, p.Name+" is gone", func() (string, bool) {
		err := i.direct.Get(context.WithoutCancel(b.Context()), client.ObjectKeyFromObject(p), &v1.Provider{})
		return fmt.Sprint(err), client.IgnoreNotFound(err) == nil && err != nil
	})
}
