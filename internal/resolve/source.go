package resolve

import (
	"context"
	"slices"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/solve"
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
	kept     map[string]lockfile.Package
	// held says that of what is kept there is nothing but what is kept.
	held bool
	busy sync.WaitGroup

	mu       sync.Mutex
	lists    map[string]*task[content.TagList]
	versions map[version]*task[content.Description]
	needs    map[wish]bool
	misses   map[string]int
	notes    map[string]bool
	// silent is why a place could not be asked that could know more than a mirror.
	silent error
}

// version is one of a package, as a solver names it.
type version struct{ pkg, pin string }

// wish is what somebody needs.
type wish struct {
	pkg, constraint string
	exact, held     bool
}

func newSource(ctx context.Context, r *Resolver, kept []lockfile.Package) *source {
	s := &source{
		ctx: ctx, resolver: r, kept: map[string]lockfile.Package{},
		lists: map[string]*task[content.TagList]{}, versions: map[version]*task[content.Description]{},
		needs: map[wish]bool{}, misses: map[string]int{}, notes: map[string]bool{},
	}
	for _, p := range kept {
		s.kept[p.Package] = p
	}
	return s
}

// wait waits until nothing is under way.
func (s *source) wait() { s.busy.Wait() }

// Versions implements [solve.Source].
func (s *source) Versions(pkg string) ([]string, error) {
	kept, ok := s.kept[pkg]
	if ok && s.held {
		return []string{kept.Pin()}, nil
	}
	t := s.list(pkg)
	s.wait()
	list, err := t.get()
	tags := list.Tags
	if at := slices.Index(tags, kept.Version); at >= 0 && ok {
		// Of a tag that is kept there is one content, wherever the tag is now.
		tags = slices.Clone(tags)
		tags[at] = kept.Pin()
	}
	return tags, err
}

// Dependencies implements [solve.Source].
func (s *source) Dependencies(pkg, pin string) ([]solve.Dependency, error) {
	if kept, ok := s.kept[pkg]; ok && kept.Pin() == pin {
		var out []solve.Dependency
		for _, d := range kept.Dependencies {
			out = append(out, solve.Dependency(d))
		}
		return out, nil
	}
	if _, ok := s.known(pkg, pin); !ok {
		s.ahead(pkg, pin)
	}
	t := s.read(pkg, pin, true)
	s.wait()
	d, err := t.get()
	if err != nil {
		return nil, err
	}
	return s.resolver.dependencies(d.Meta), nil
}

// foresee reads what the roots need, as far as it can be foreseen.
func (s *source) foresee(roots []lockfile.Root, held bool) {
	s.held = held // Nothing is under way.
	for _, root := range roots {
		if root.Optional {
			continue
		}
		s.need(root.Package, root.Constraint, root.Exact)
	}
	s.wait()
}

// need asks for what somebody needs, and then for what that needs, as far as it can
// be foreseen.
func (s *source) need(pkg, constraint string, exact bool) {
	w := wish{pkg, constraint, exact, s.held}
	s.mu.Lock()
	asked := s.needs[w]
	s.needs[w] = true
	s.mu.Unlock()
	if asked {
		return
	}
	root := lockfile.Root{Package: pkg, Constraint: constraint, Exact: exact}
	if kept, ok := s.kept[pkg]; ok && root.Accepts(kept) {
		for _, d := range kept.Dependencies {
			if !d.Optional {
				s.need(d.Package, d.Constraint, false)
			}
		}
		if s.held {
			return
		}
	}
	if exact {
		s.read(pkg, constraint, true)
		return
	}
	c := solve.ParseConstraint(constraint)
	if named := c.Named(); named != "" {
		s.read(pkg, named, true)
		return
	}
	list := s.list(pkg)
	s.busy.Go(func() {
		l, err := list.get()
		if err != nil {
			return
		}
		if fit := c.Order(l.Tags); len(fit) > 0 {
			s.read(pkg, fit[0], true)
		}
	})
}

// ahead is called when the solver asks for a version that was not foreseen. It is
// looking for one that goes with the rest, downward: each time that it has to go on,
// twice as many are read at once.
func (s *source) ahead(pkg, pin string) {
	s.mu.Lock()
	more := 1<<min(s.misses[pkg], mostAhead) - 1
	s.misses[pkg]++
	list := s.lists[pkg]
	s.mu.Unlock()
	if list == nil || more == 0 {
		return
	}
	l, err := list.get()
	if err != nil {
		return
	}
	below := solve.ParseConstraint("").Order(l.Tags)
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
func (s *source) list(pkg string) *task[content.TagList] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.lists[pkg]; ok {
		return t
	}
	t := newTask[content.TagList]()
	s.lists[pkg] = t
	s.busy.Go(func() {
		list, err := ask(s, pkg, "", func(o content.Origin) (content.TagList, error) { return s.resolver.Registry.Tags(s.ctx, o) })
		t.end(list, err, err)
	})
	return t
}

// known gives the task of a version that was asked for.
func (s *source) known(pkg, pin string) (*task[content.Description], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.versions[version{pkg, pin}]
	return t, ok
}

// read reads what a version needs and, if it is to be followed, what that needs.
func (s *source) read(pkg, pin string, follow bool) *task[content.Description] {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := version{pkg, pin}
	t, ok := s.versions[v]
	if !ok {
		t = newTask[content.Description]()
		s.versions[v] = t
		s.busy.Go(func() {
			d, err := s.describe(pkg, pin)
			t.end(d, s.aside(v, err), err)
		})
	}
	if follow && !t.followed {
		t.followed = true
		s.busy.Go(func() {
			d, err := t.get()
			if err != nil {
				return
			}
			for _, dep := range s.resolver.dependencies(d.Meta) {
				if !dep.Optional {
					s.need(dep.Package, dep.Constraint, false)
				}
			}
		})
	}
	return t
}

func (s *source) describe(pkg, pin string) (content.Description, error) {
	d, err := ask(s, pkg, pin, func(o content.Origin) (content.Description, error) {
		return s.resolver.Registry.Describe(s.ctx, o, oci.Digest{})
	})
	if !vanished(err) {
		return d, err
	}
	ref, perr := reference(pkg, pin)
	if perr != nil || ref.Tag == "" {
		return d, err
	}
	now, moved := ask(s, pkg, ref.Tag, func(o content.Origin) (content.Description, error) {
		return s.resolver.Registry.Describe(s.ctx, o, oci.Digest{})
	})
	if moved != nil {
		return d, err
	}
	return d, ErrTagMoved.New(err, "%s stands for %s now", ref.WithTag(ref.Tag), now.Digest)
}
