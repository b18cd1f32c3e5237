package resolver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// source is the solver.Source of a resolution. It prefetches, and lists each repository and
// reads each version only once.
type source struct {
	ctx      context.Context // The context of one Resolve; solver.Source has no context parameter.
	resolver *Resolver
	aliases  aliases
	locked   map[string]lockfile.Package
	// kinds are the decisions about providers of kinds, and virtual the virtual packages.
	kinds   kindChoices
	virtual map[string]*virtualPackage
	// lockedOnly means that locked packages cannot change.
	lockedOnly bool
	// installed are the digests of the versions that are in use.
	installed map[namedVersion]oci.Digest
	// named are the versions that roots name exactly, and deprecated means that deprecated versions can be selected.
	named      map[namedVersion]bool
	deprecated bool
	inFlight   sync.WaitGroup
	ahead      *ahead

	mu         sync.Mutex
	skipped    bool // A deprecated version was not selected.
	lists      map[string]*task[Versions]
	versions   map[versionKey]*task[Metadata]
	requested  map[requirement]bool
	misses     map[string]int
	questions  map[string]map[string]bool // versions of each package whose dependencies the solver requested
	notes      map[string]bool
	withdrawn  map[string]bool            // the notes about versions with a status
	newest     map[*task[Versions]]string // the newest release of lists, or ""
	newestRead map[string]string          // the newest release of each repository that was read
	// names are the canonical names of all repositories of the problem.
	names map[string]bool
	// upgrade reports whether the request is an upgrade.
	upgrade bool
	// pinned are the packages for which a root names the locked version. No other version can be selected, but an
	// explanation can name one.
	pinned map[string]bool
	// unlisted is the error of a locked package whose versions could not be listed.
	unlisted error
	// mirrorErr is the error of a location that may list more versions than a mirror.
	mirrorErr error
}

// A versionKey names one version of a package.
type versionKey struct{ pkg, pin string }

// A requirement is a dependency that was prefetched.
type requirement struct {
	pkg, constraint   string
	exact, lockedOnly bool
}

func newSource(ctx context.Context, r *Resolver, q Request, known aliases) *source {
	s := &source{
		ctx: ctx, resolver: r, aliases: known, upgrade: q.Upgrade, pinned: map[string]bool{}, named: namedVersions(q.Roots),
		installed: map[namedVersion]oci.Digest{}, locked: map[string]lockfile.Package{},
		lists: map[string]*task[Versions]{}, newest: map[*task[Versions]]string{}, newestRead: map[string]string{},
		versions:  map[versionKey]*task[Metadata]{},
		requested: map[requirement]bool{}, misses: map[string]int{}, questions: map[string]map[string]bool{},
		notes: map[string]bool{}, withdrawn: map[string]bool{}, names: map[string]bool{},
		virtual: map[string]*virtualPackage{},
	}
	s.ahead = newAhead(s)
	for alias := range known {
		s.names[alias] = true
	}
	for _, root := range q.Roots {
		if root.Package != "" {
			s.names[root.Package] = true
		}
	}
	for _, p := range q.Installed {
		s.installed[namedVersion{p.Repository, p.Version}] = p.Digest
	}
	for _, p := range q.Locked {
		s.locked[p.Repository] = p
		s.pinned[p.Repository] = slices.ContainsFunc(
			q.Roots, func(r dependency.Root) bool { return r.Package == p.Repository && isPinned(r) && r.Accepts(p.Pin()) },
		)
		s.names[p.Repository] = true
		for _, d := range p.Dependencies {
			s.names[d.Package] = true
		}
	}
	return s
}

// isPinned reports whether a root names one version.
func isPinned(r dependency.Root) bool {
	return !r.Optional && (r.Exact || version.ParseConstraint(r.Constraint).Pinned() != "")
}

// wait waits until no request is in progress.
func (s *source) wait() { s.inFlight.Wait() }

// Versions implements [solver.Source].
func (s *source) Versions(pkg string) ([]string, error) {
	if isVirtual(pkg) {
		return s.knownVirtual(pkg).versions()
	}
	locked, ok := s.locked[pkg]
	if ok && s.lockedOnly {
		return []string{locked.Pin()}, nil
	}
	t := s.list(pkg)
	s.wait()
	list, err := t.wait()
	switch {
	case !ok:
		return list.Tags, err
	case err != nil:
		// The locked version needs no request.
		s.unlisted = err
		if !s.pinned[pkg] {
			s.note(fmt.Sprintf("%s stays at %s: its versions are unknown: %v", pkg, locked.ShortVersion(), err))
		}
		return []string{locked.Pin()}, nil
	}
	tags := slices.Clone(list.Tags)
	switch at := slices.Index(tags, locked.Version); {
	case at >= 0:
		// A locked tag keeps its content, even if the tag has moved.
		tags[at] = locked.Pin()
	case s.upgrade:
		// An upgrade of other packages keeps a version that the registry no longer lists.
		tags = append(tags, locked.Pin())
	}
	return tags, nil
}

// Dependencies implements [solver.Source].
func (s *source) Dependencies(pkg, pin string) ([]dependency.Dependency, error) {
	if isVirtual(pkg) {
		return s.dependenciesOfVirtual(pkg, pin)
	}
	if locked, ok := s.locked[pkg]; ok && (locked.Pin() == pin || locked.Version == pin) {
		// The tag is the locked version under another name, and its dependencies may not all be in its metadata.
		return locked.Dependencies, nil
	}
	if _, ok := s.lookup(pkg, pin); !ok {
		s.prefetchOlder(pkg, pin)
	}
	if n := s.versionsRead(pkg, pin); n > maxVersionsRead {
		return nil, ErrTooManyVersions.New(
			nil, "none of the %d newest versions of %s satisfies the other requirements", maxVersionsRead, pkg,
		)
	}
	t := s.read(pkg, pin, true)
	s.wait()
	m, err := t.wait()
	if err != nil {
		return nil, err
	}
	if err := s.checkStatus(pkg, pin, m); err != nil {
		return nil, err
	}
	return s.dependencies(m.Meta), nil
}

// prefetch reads the likely versions of the roots and of their dependencies.
func (s *source) prefetch(roots []dependency.Root, lockedOnly bool) {
	s.lockedOnly = lockedOnly // No request is in progress.
	for _, root := range roots {
		if root.Optional {
			continue
		}
		s.prefetchDependency(root.Package, root.Constraint, root.Exact)
	}
	s.wait()
}

// prefetchDependency reads the likely version of a dependency, and of its dependencies.
func (s *source) prefetchDependency(pkg, constraint string, exact bool) {
	if isVirtual(pkg) {
		if v := s.knownVirtual(pkg); len(v.providers.Candidates) > 0 {
			p := v.providers.Candidates[0]
			s.prefetchDependency(p.Repository, p.Constraint, false)
		}
		return
	}
	w := requirement{pkg, constraint, exact, s.lockedOnly}
	s.mu.Lock()
	asked := s.requested[w]
	s.requested[w] = true
	s.mu.Unlock()
	if asked {
		return
	}
	root := dependency.Root{Package: pkg, Constraint: constraint, Exact: exact}
	if kept, ok := s.locked[pkg]; ok && root.Accepts(kept.Pin()) {
		for _, d := range kept.Dependencies {
			if !d.Optional {
				s.prefetchDependency(d.Package, d.Constraint, false)
			}
		}
		if s.lockedOnly || s.pinned[pkg] {
			return
		}
	}
	s.ahead.expect(pkg, constraint)
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

// prefetchOlder prefetches older versions after the solver has requested a version that was
// not prefetched. Each call reads twice as many versions as the previous one, because the
// solver tries successively older versions.
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

// maxVersionsRead limits the versions of one package that are read. Each requires a request,
// and a repository can have tens of thousands of tags.
const maxVersionsRead = 1000

// versionsRead returns the number of versions of a package whose dependencies the solver
// requested, including this one.
func (s *source) versionsRead(pkg, pin string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.questions[pkg] == nil {
		s.questions[pkg] = map[string]bool{}
	}
	s.questions[pkg][pin] = true
	return len(s.questions[pkg])
}

// mostAhead limits the versions that are read concurrently to 2^mostAhead.
const mostAhead = 4

// list returns the tags of a repository.
func (s *source) list(pkg string) *task[Versions] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.lists[pkg]; ok {
		return t
	}
	t := newTask[Versions]()
	s.lists[pkg] = t
	s.inFlight.Go(func() {
		list, err := s.tags(pkg)
		t.complete(list, err, err)
	})
	return t
}

// tags reads the tags of a repository.
func (s *source) tags(pkg string) (Versions, error) {
	ref, err := reference(pkg, "")
	if err != nil {
		return Versions{}, err
	}
	if list, ok := s.ahead.lists.take(ref); ok {
		return list, nil
	}
	return s.resolver.Registry.Versions(s.ctx, ref)
}

// lookup returns the task of a version, and false if the version was not requested.
func (s *source) lookup(pkg, pin string) (*task[Metadata], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.versions[versionKey{pkg, pin}]
	return t, ok
}

// read reads the metadata of a version and, if follow is true, of its dependencies.
func (s *source) read(pkg, pin string, follow bool) *task[Metadata] {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := versionKey{pkg, pin}
	t, ok := s.versions[v]
	if !ok {
		t = newTask[Metadata]()
		s.versions[v] = t
		s.newestRead[pkg] = newestRelease(s.newestRead[pkg], pin)
		s.inFlight.Go(func() {
			d, err := s.metadata(pkg, pin)
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
			for _, dep := range s.dependencies(d.Meta) {
				if !dep.Optional {
					s.prefetchDependency(dep.Package, dep.Constraint, false)
				}
			}
		})
	}
	return t
}

// metadata reads the metadata of a version. If the digest of a tag with a digest does not
// exist, the error reports the current digest of the tag.
func (s *source) metadata(pkg, pin string) (Metadata, error) {
	ref, err := reference(pkg, pin)
	if err != nil {
		return Metadata{}, err
	}
	if m, ok := s.ahead.versions.take(ref); ok {
		return m, nil
	}
	m, err := s.resolver.Registry.Metadata(s.ctx, ref)
	if !errors.Is(err, oci.ErrManifestNotFound) || ref.Tag == "" || ref.Digest.IsZero() {
		return m, err
	}
	now, moved := s.resolver.Registry.Metadata(s.ctx, ref.WithTag(ref.Tag))
	if moved != nil {
		return m, err
	}
	return m, ErrTagMoved.New(err, "%s now refers to %s", ref.WithTag(ref.Tag), now.Digest)
}
