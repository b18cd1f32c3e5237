package resolver

import (
	"context"
	"slices"
	"sync"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// Hints predict the dependencies of packages before these are read, so that all levels of a tree are read at the same
// time.
//
// A hint only starts a request earlier. It never changes the result of a resolution: with wrong, missing or hostile
// hints, the result is the same, and a bounded number of requests is of no use.
//
// Security rule: hints come only from sources that the user trusts, which are the store of this machine and the indexes
// that the user configured; never from a registry. Moreover, a hint causes requests only to hosts that the resolution
// itself reads: a repository at another host waits until the resolution reads a repository at that host.
type Hints interface {
	// Dependencies returns the dependencies that the version that a constraint selects probably has, or nil if nothing is
	// known. It must be safe for concurrent use, and return when the context ends.
	Dependencies(ctx context.Context, repository, constraint string) []dependency.Dependency
	// Remember records the packages of a solution for later resolutions.
	Remember(ctx context.Context, packages []lockfile.Package)
}

// maxPredicted bounds the requirements that are read because of hints in one resolution, and maxReadAhead the number of
// these requests at the same time, so that a registry has room for the requests of the resolution itself.
const (
	maxPredicted = 1000
	maxReadAhead = 40
)

// ahead reads what hints predict. The source of the solver takes its answers instead of sending the same requests.
type ahead struct {
	source *source
	cancel context.CancelFunc
	// ctx ends with the resolution, also while requests are in progress.
	ctx      context.Context //nolint:containedctx // As in source.
	room     chan struct{}
	work     sync.WaitGroup
	lists    early[Versions]
	versions early[Metadata]

	mu sync.Mutex
	// hosts are those that the resolution reads, and waiting the predictions for other hosts.
	hosts     map[string]bool
	waiting   map[string][]prediction
	predicted map[prediction]bool
}

// A prediction is a requirement that a resolution probably has.
type prediction struct{ pkg, constraint string }

func newAhead(s *source) *ahead {
	a := &ahead{
		source: s, room: make(chan struct{}, maxReadAhead), hosts: map[string]bool{}, waiting: map[string][]prediction{},
		predicted: map[prediction]bool{},
	}
	a.ctx, a.cancel = context.WithCancel(s.ctx)
	return a
}

// stop cancels the requests that are in progress, and waits until they have ended.
func (a *ahead) stop() {
	a.cancel()
	a.work.Wait()
}

// expect reads the predicted dependencies of a package that the resolution reads, and those that have waited for its
// host.
func (a *ahead) expect(pkg, constraint string) {
	if a.source.resolver.Hints == nil {
		return
	}
	a.work.Go(func() {
		for _, p := range a.admit(a.host(pkg)) {
			a.read(p)
		}
		a.follow(prediction{pkg, constraint})
	})
}

// admit records that the resolution reads a host, and returns the predictions that have waited for it.
func (a *ahead) admit(host string) []prediction {
	a.mu.Lock()
	defer a.mu.Unlock()
	if host == "" {
		return nil
	}
	waiting := a.waiting[host]
	a.hosts[host] = true
	delete(a.waiting, host)
	return waiting
}

// host returns the host from which a package is read, or the empty string if it is not known.
func (a *ahead) host(pkg string) string {
	ref, err := reference(pkg, "")
	if err != nil {
		return ""
	}
	location, err := a.source.resolver.Registry.Location(a.ctx, ref)
	if err != nil {
		return ""
	}
	at, err := oci.ParseReference(location, oci.ParseOptions{AllowUntagged: true})
	if err != nil {
		return ""
	}
	return at.Host()
}

// follow predicts the dependencies of a requirement. A locked package is read only if it has to change, which is not
// known yet.
func (a *ahead) follow(p prediction) {
	for _, d := range a.source.resolver.Hints.Dependencies(a.ctx, p.pkg, p.constraint) {
		name, err := a.source.canonical(d.Package)
		if d.Optional || err != nil {
			continue
		}
		name = a.source.aliases.of(name)
		if _, locked := a.source.locked[name]; !locked {
			a.predict(prediction{name, d.Constraint})
		}
	}
}

// predict reads a requirement once the resolution reads its host.
func (a *ahead) predict(p prediction) {
	host := a.host(p.pkg)
	a.mu.Lock()
	known := host == "" || a.predicted[p] || len(a.predicted) >= maxPredicted
	admitted := a.hosts[host]
	if !known {
		a.predicted[p] = true
		if !admitted {
			a.waiting[host] = append(a.waiting[host], p)
		}
	}
	a.mu.Unlock()
	if !known && admitted {
		a.read(p)
	}
}

// read reads the version that a requirement probably selects, as source.prefetchDependency does, and what is predicted
// for it.
func (a *ahead) read(p prediction) {
	a.work.Go(func() { a.follow(p) })
	a.work.Go(func() {
		registry, c := a.source.resolver.Registry, version.ParseConstraint(p.constraint)
		pin := c.Pinned()
		if pin == "" {
			list, ok := a.lists.send(a, p.pkg, "", registry.Versions)
			fit := c.Filter(list.Tags)
			if !ok || len(fit) == 0 {
				return
			}
			pin = fit[0]
		}
		a.versions.send(a, p.pkg, pin, registry.Metadata)
	})
}

// remember records the packages of a solution that were not locked.
func (r *Resolver) remember(ctx context.Context, locked, packages []lockfile.Package) {
	if r.Hints == nil {
		return
	}
	news := slices.DeleteFunc(slices.Clone(packages), func(p lockfile.Package) bool {
		return slices.ContainsFunc(
			locked, func(l lockfile.Package) bool { return l.Repository == p.Repository && l.Pin() == p.Pin() },
		)
	})
	r.Hints.Remember(ctx, news)
}

// early has the answers to requests that were sent because of hints. The zero value is ready for use.
type early[T any] struct {
	mu sync.Mutex
	// taken are the references that the resolution has requested, which are not requested because of a hint any more.
	taken map[oci.Reference]bool
	tasks map[oci.Reference]*task[T]
}

// send sends a request, unless it was sent before. It reports whether there is an answer.
func (e *early[T]) send(
	a *ahead, pkg, pin string, request func(context.Context, oci.Reference) (T, error),
) (answer T, ok bool) {
	ref, err := reference(pkg, pin)
	if err != nil {
		return answer, false
	}
	select {
	case a.room <- struct{}{}:
		defer func() { <-a.room }()
	case <-a.ctx.Done():
		return answer, false
	}
	t, mine := e.task(ref)
	if t == nil {
		return answer, false
	}
	if mine {
		value, err := request(a.ctx, ref)
		t.complete(value, err, err)
	}
	answer, err = t.wait()
	return answer, err == nil
}

// task returns the task of a request, and whether the caller has to complete it. It returns nil if the resolution sends
// the request.
func (e *early[T]) task(ref oci.Reference) (t *task[T], mine bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t, ok := e.tasks[ref]; ok || e.taken[ref] {
		return t, false
	}
	if e.tasks == nil {
		e.tasks = map[oci.Reference]*task[T]{}
	}
	t = newTask[T]()
	e.tasks[ref] = t
	return t, true
}

// take returns the answer to a request of the resolution. It reports whether there is one; otherwise, also after an
// error, the resolution sends the request itself.
func (e *early[T]) take(ref oci.Reference) (answer T, ok bool) {
	e.mu.Lock()
	if e.taken == nil {
		e.taken = map[oci.Reference]bool{}
	}
	e.taken[ref] = true
	t := e.tasks[ref]
	e.mu.Unlock()
	if t == nil {
		return answer, false
	}
	answer, err := t.wait()
	return answer, err == nil
}
