package resolve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/indexlayer"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/solve"
)

// reference is a version of a package, as a solver names it; an empty one is the
// repository itself.
func (r *Resolver) reference(pkg, pin string) (oci.Reference, error) {
	separator := ":"
	switch {
	case pin == "":
		separator = ""
	case strings.HasPrefix(pin, "sha256:"):
		separator = "@"
	}
	return oci.ParseReference(pkg+separator+pin, oci.ParseOptions{AllowUntagged: pin == ""})
}

// identity is the one name of a package in a problem: its repository.
func (r *Resolver) identity(pkg string) string {
	ref, err := oci.ParseReference(pkg, oci.ParseOptions{AllowUntagged: true, DefaultRegistry: r.DefaultRegistry})
	if err != nil {
		return pkg
	}
	return ref.Name()
}

// dependencies are what a package needs, under the names of a problem.
func (r *Resolver) dependencies(meta format.Meta) []solve.Dependency {
	var out []solve.Dependency
	for _, d := range meta.DependsOn {
		out = append(out, solve.Dependency{Package: r.identity(d.Package), Constraint: d.Constraint})
	}
	return out
}

// ask asks a registry about a version, or about a repository.
func ask[T any](s *source, pkg, pin string, question func(content.Origin) (T, error)) (answer T, err error) {
	ref, err := s.resolver.reference(pkg, pin)
	if err != nil {
		return answer, unnamed(pkg, err)
	}
	o := content.Plain(ref)
	if s.resolver.Locate != nil {
		if pin == "" {
			// Prefixes are compared with whole references, and a list of tags does not
			// depend on the tag.
			ref.Tag = "latest"
		}
		if o, err = s.resolver.Locate(s.ctx, ref); err != nil {
			return answer, err
		}
	}
	leave, err := s.hosts.enter(s.ctx, o)
	if err != nil {
		return answer, err
	}
	defer leave()
	return question(o)
}

// unnamed is the failure of a dependency whose package is no reference.
func unnamed(pkg string, err error) error {
	parses := func(registry string) bool {
		_, err := oci.ParseReference(pkg, oci.ParseOptions{AllowUntagged: true, DefaultRegistry: registry})
		return err == nil
	}
	if !parses("") && parses("registry.invalid") {
		return ErrUnqualified.New(nil, "%s names no registry", pkg)
	}
	return ErrUnusable.New(err, "%q names no version of a package", pkg)
}

// aside is what the solver is told of a version that could not be read: one that is
// wrong in itself is one that is not there, which a note says.
func (s *source) aside(v version, err error) error {
	if !unusable(err) {
		return err
	}
	s.note(fmt.Sprintf("%s %s is set aside: %v", v.pkg, v.pin, err))
	return ErrUnusable.New(err, "%s %s cannot be used", v.pkg, v.pin)
}

// prove reads the package.yaml of what was chosen and only claimed so far.
func (s *source) prove(picks []solve.Pick) error {
	errs := make([]error, len(picks))
	var proofs sync.WaitGroup
	for i, pick := range picks {
		t, ok := s.known(pick.Package, pin(pick))
		if !ok {
			continue
		}
		claim, err := t.get()
		if err != nil || !claim.Claimed {
			continue
		}
		proofs.Go(func() {
			var proof content.Description
			proof, errs[i] = ask(s, pick.Package, pin(pick), func(o content.Origin) (content.Description, error) {
				return s.resolver.Registry.Prove(s.ctx, o, claim.Digest)
			})
			same := slices.Equal(proof.Meta.DependsOn, claim.Meta.DependsOn) && proof.Meta.Kind == claim.Meta.Kind
			if errs[i] == nil && !same {
				errs[i] = indexlayer.ErrMismatch.New(nil, "%s %s claims to need something else than its package.yaml says", pick.Package, pin(pick))
			}
		})
	}
	proofs.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *source) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes[text] = true
}

func (s *source) told() []string {
	s.wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.notes))
}

// hosts bound the requests to each host.
type hosts struct {
	most int
	mu   sync.Mutex
	all  map[string]chan struct{}
}

// perHost lets a wide tree be read in few rounds. Other package managers ask as many
// at once.
const perHost = 50

func newHosts(most int) *hosts {
	if most <= 0 {
		most = perHost
	}
	return &hosts{most: most, all: map[string]chan struct{}{}}
}

// enter waits for leave to ask the host that is asked first.
func (h *hosts) enter(ctx context.Context, o content.Origin) (leave func(), err error) {
	host := o.Ref.Host()
	if len(o.Places) > 0 {
		host = o.Places[0].Ref.Host()
	}
	h.mu.Lock()
	room, ok := h.all[host]
	if !ok {
		room = make(chan struct{}, h.most)
		h.all[host] = room
	}
	h.mu.Unlock()
	select {
	case room <- struct{}{}:
		return func() { <-room }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
