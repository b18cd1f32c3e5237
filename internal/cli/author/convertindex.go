package author

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
)

// crdProviders finds the packages that define required CRDs: the ones of --provides, and otherwise those of the indexes
// that are selected without doubt.
type crdProviders struct {
	env    *terminal.Env
	stated statedProviders
	// finder knows the packages of the indexes; nil without one.
	finder *provide.Finder
	source *content.LazySource
	// err is the first error of an index.
	err error
}

// openProviders returns the providers of required CRDs until they are closed.
func (c *ConvertCmd) openProviders(env *terminal.Env) (*crdProviders, error) {
	stated, err := parseProvides(c.Provides)
	if err != nil || len(c.Index) == 0 {
		return &crdProviders{env: env, stated: stated}, err
	}
	source := &content.LazySource{Flags: content.ContentFlags{CacheFlags: c.CacheFlags, TrustFlags: c.TrustFlags}}
	finder := source.IndexFinder(c.KindIndexFlag)
	finder.Command, finder.Unrecorded = c.commandWith, true
	return &crdProviders{env: env, stated: stated, finder: finder, source: source}, nil
}

// Close implements io.Closer.
func (p *crdProviders) Close() error {
	if p.source == nil {
		return nil
	}
	return p.source.Close()
}

// of returns the package that defines a CRD, and false if it is not known. It keeps the first error of an index.
func (p *crdProviders) of(ref firstgen.CRDReference) (dependency.Dependency, bool) {
	if d, ok := p.stated.of(ref); ok || p.finder == nil || p.err != nil {
		return d, ok
	}
	first, err := p.find(dependency.KindRef{Name: ref.Plural, Group: ref.Group, Version: ref.Version})
	switch {
	case errors.Is(err, provide.ErrAmbiguous):
		fmt.Fprintf(p.env.Stderr, "note: %s\n", terminal.Safe(errcode.Message(err)))
		return dependency.Dependency{}, false
	case err != nil && !errors.Is(err, provide.ErrNoProvider):
		p.err = err
	}
	if first == nil {
		if err == nil {
			fmt.Fprintf(p.env.Stderr, "note: %s\n", terminal.Safe(fmt.Sprintf("The kinds of %s are in several packages.", ref)))
		}
		return dependency.Dependency{}, false
	}
	fmt.Fprintf(
		p.env.Stderr, "note: %s\n",
		terminal.Safe(fmt.Sprintf("%s is provided by %s of %s.", ref, first.Ref(), first.PublisherText())),
	)
	return dependency.Dependency{Package: first.Repository, Constraint: constraintOf(*first), Kind: first.Type}, true
}

// find returns the package that provides a kind, or every known kind of a group, in the indexes. It returns nil if
// several packages provide the kinds of a group.
func (p *crdProviders) find(kind dependency.KindRef) (*provide.Candidate, error) {
	rankings, err := p.finder.RankTogether(p.env.Context, []dependency.KindRef{kind}, provide.Request{})
	if err != nil {
		return nil, err
	}
	var first *provide.Candidate
	for _, r := range rankings {
		if err := p.finder.Err(p.env.Context, r); err != nil {
			return nil, err
		}
		next := r.Order[0]
		if first != nil && first.Ref() != next.Ref() {
			return nil, nil
		}
		if first != nil && first.Constraint != next.Constraint {
			next.Constraint = "" // Only the version is known to provide all kinds.
		}
		first = &next
	}
	return first, nil
}

// constraintOf returns the constraint on the versions of a package that is selected for a CRD.
func constraintOf(c provide.Candidate) string {
	return cmp.Or(c.Constraint, c.Version)
}

// commandWith returns this command with a package for a CRD.
func (c *ConvertCmd) commandWith(kind dependency.KindRef, of provide.Candidate) string {
	words := []string{"xpkg convert", wording.ShellWord(c.Package), "-o", wording.ShellWord(c.Output)}
	for _, p := range append(c.Provides[:len(c.Provides):len(c.Provides)], of.CRD()+"="+of.Repository+"@"+
		constraintOf(of)) {
		words = append(words, "--provides", wording.ShellWord(p))
	}
	return strings.Join(words, " ")
}
