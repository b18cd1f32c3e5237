package resolver

import (
	"context"
	"slices"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/solver"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// source answers a solver, and knows the answers before it is asked. Each repository
// is listed once, and each version is read once.
//
// The solver is answered when nothing is under way any more. So what is asked of
// registries does not depend on which of them is the quickest, and neither does the
// solution.
type source struct {
	ctx      context.Context //nolint:containedctx // It is that of one Resolve, and a solver has no other way to get it.
	resolver *Resolver
	locked   map[string]lockfile.Package
	// held says that of what is kept there is nothing but what is kept.
	lockedOnly bool
	inFlight   sync.WaitGroup

	mu        sync.Mutex
	lists     map[string]*task[fetch.TagList]
	versions  map[versionKey]*task[fetch.Description]
	requested map[requirement]bool
	misses    map[string]int
	notes     map[string]bool
	// silent is why a place could not be asked that could know more than a mirror.
	mirrorErr error
}

// A versionKey names one version of a package.
type versionKey struct{ pkg, pin string }

// wish is what somebody needs.
type requirement struct {
	pkg, constraint string
	exact, held     bool
}

func newSource(ctx context.Context, r *Resolver, kept []lockfile.Package) *source {
	s := &source{
		ctx: ctx, resolver: r, locked: map[string]lockfile.Package{},
		lists: map[string]*task[fetch.TagList]{}, versions: map[versionKey]*task[fetch.Description]{},
		requested: map[requirement]bool{}, misses: map[string]int{}, notes: map[string]bool{},
	}
	for _, p := range kept {
		s.locked[p.Repository] = p
	}
	return s
}

// wait waits until nothing is under way.
func (s *source) wait() { s.inFlight.Wait() }

// Versions implements [solve.Source].
func (s *source) Versions(pkg string) ([]string, error) {
	kept, ok := s.locked[pkg]
	if ok && s.lockedOnly {
		return []string{kept.Pin()}, nil
	}
	t := s.list(pkg)
	s.wait()
	list, err := t.wait()
	tags := list.Tags
	if at := slices.Index(tags, kept.Version); at >= 0 && ok {
		// Of a tag that is kept there is one content, wherever the tag is now.
		tags = slices.Clone(tags)
		tags[at] = kept.Pin()
	}
	return tags, err
}

// Dependencies implements [solve.Source].
func (s *source) Dependencies(pkg, pin string) ([]solver.Dependency, error) {
	if kept, ok := s.locked[pkg]; ok && kept.Pin() == pin {
		return kept.Dependencies, nil
	}
	if _, ok := s.lookup(pkg, pin); !ok {
		s.prefetchOlder(pkg, pin)
	}
	t := s.read(pkg, pin, true)
	s.wait()
	d, err := t.wait()
	if err != nil {
		return nil, err
	}
	return s.resolver.dependencies(d.Meta), nil
}

// foresee reads what the roots need, as far as it can be foreseen.
func (s *source) prefetch(roots []lockfile.Root, held bool) {
	s.lockedOnly = held // Nothing is under way.
	for _, root := range roots {
		if root.Optional {
			continue
		}
		s.prefetchDependency(root.Package, root.Constraint, root.Exact)
	}
	s.wait()
}

// need asks for what somebody needs, and then for what that needs, as far as it can
// be foreseen.
func (s *source) prefetchDependency(pkg, constraint string, exact bool) {
	w := requirement{pkg, constraint, exact, s.lockedOnly}
	s.mu.Lock()
	asked := s.requested[w]
	s.requested[w] = true
	s.mu.Unlock()
	if asked {
		return
	}
	root := lockfile.Root{Package: pkg, Constraint: constraint, Exact: exact}
	if kept, ok := s.locked[pkg]; ok && root.Accepts(kept.Pin()) {
		for _, d := range kept.Dependencies {
			if !d.Optional {
				s.prefetchDependency(d.Package, d.Constraint, false)
			}
		}
		if s.lockedOnly {
			return
		}
	}
	if exact {
		s.read(pkg, constraint, true)
		return
	}
	c := version.ParseConstraint(constraint)
	if named := c.Pinned(); named != "" {
		s.read(pkg, named, true)
		return
	}
	list := s.list(pkg)
	s.inFlight.Go(func() {
		l, err := list.wait()
		if err != nil {
			return
		}
		if fit := c.Filter(l.Tags); len(fit) > 0 {
			s.read(pkg, fit[0], true)
		}
	})
}

// ahead is called when the solver asks for a version that was not foreseen. It is
// looking for one that goes with the rest, downward: each time that it has to go on,
// twice as many are read at once.
func (s *source) prefetchOlder(pkg, pin string) {
	s.mu.Lock()
	more := 1<<min(s.misses[pkg], mostAhead) - 1
	s.misses[pkg]++
	list := s.lists[pkg]
	s.mu.Unlock()
	if list == nil || more == 0 {
		return
	}
	l, err := list.wait()
	if err != nil {
		return
	}
	below := version.ParseConstraint("").Filter(l.Tags)
	at := slices.Index(below, pin)
	if at < 0 {
		return
	}
	below = below[at+1:]
	for _, tag := range below[:min(more, len(below))] {
		s.read(pkg, tag, false)
	}
}

// mostAhead bounds what is read at once: 2^mostAhead versions.
const mostAhead = 4

// list lists the tags of a repository.
func (s *source) list(pkg string) *task[fetch.TagList] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.lists[pkg]; ok {
		return t
	}
	t := newTask[fetch.TagList]()
	s.lists[pkg] = t
	s.inFlight.Go(func() {
		list, err := locateAndCall(s, pkg, "", func(o fetch.Origin) (fetch.TagList, error) { return s.resolver.Registry.Tags(s.ctx, o) })
		t.complete(list, err, err)
	})
	return t
}

// known gives the task of a version that was asked for.
func (s *source) lookup(pkg, pin string) (*task[fetch.Description], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.versions[versionKey{pkg, pin}]
	return t, ok
}

// read reads what a version needs and, if it is to be followed, what that needs.
func (s *source) read(pkg, pin string, follow bool) *task[fetch.Description] {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := versionKey{pkg, pin}
	t, ok := s.versions[v]
	if !ok {
		t = newTask[fetch.Description]()
		s.versions[v] = t
		s.inFlight.Go(func() {
			d, err := s.describe(pkg, pin)
			t.complete(d, s.asNotFound(v, err), err)
		})
	}
	if follow && !t.followed {
		t.followed = true
		s.inFlight.Go(func() {
			d, err := t.wait()
			if err != nil {
				return
			}
			for _, dep := range s.resolver.dependencies(d.Meta) {
				if !dep.Optional {
					s.prefetchDependency(dep.Package, dep.Constraint, false)
				}
			}
		})
	}
	return t
}

func (s *source) describe(pkg, pin string) (fetch.Description, error) {
	d, err := locateAndCall(s, pkg, pin, func(o fetch.Origin) (fetch.Description, error) {
		return s.resolver.Registry.Describe(s.ctx, o, oci.Digest{})
	})
	if !isManifestMissing(err) {
		return d, err
	}
	ref, perr := reference(pkg, pin)
	if perr != nil || ref.Tag == "" {
		return d, err
	}
	now, moved := locateAndCall(s, pkg, ref.Tag, func(o fetch.Origin) (fetch.Description, error) {
		return s.resolver.Registry.Describe(s.ctx, o, oci.Digest{})
	})
	if moved != nil {
		return d, err
	}
	return d, ErrTagMoved.New(err, "%s stands for %s now", ref.WithTag(ref.Tag), now.Digest)
}
