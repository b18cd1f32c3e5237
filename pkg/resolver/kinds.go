package resolver

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/solver"
)

// Kinds finds the packages that provide kinds of custom resources. It must be safe for concurrent use, and return the
// same results for the same arguments during a resolution.
type Kinds interface {
	// Providers returns the packages that may be selected for a kind. An error of class NotFound reports that there is
	// none; another version of the dependent may not require the kind. Any other error ends the resolution.
	Providers(ctx context.Context, q KindQuery) (Providers, error)
	// Expand returns all known kinds that a reference to all kinds of a group means, in order. Recorded is as in
	// KindQuery: a known kind for which a package was selected before stays among them.
	Expand(
		ctx context.Context, ref dependency.KindRef, recorded map[dependency.KindRef]string,
	) ([]dependency.KindRef, error)
}

// A KindQuery asks for the providers of a kind.
type KindQuery struct {
	Kind dependency.KindRef
	// Recorded maps kinds to the repositories that were selected for them before. They stay selected.
	Recorded map[dependency.KindRef]string
	// Present are the repositories of packages that are locked, or that packages of the tree require by name. They take
	// precedence.
	Present map[string]bool
	// Together are kinds that are required together with the kind, such as all kinds of a group. No two packages that are
	// selected for them may define the same CRD.
	Together []dependency.KindRef
}

// Providers are the packages that may be selected for a kind, best first.
type Providers struct {
	Candidates []Provider
	// Undecided is the error of the resolution if the kind is part of the solution, and the packages that are selected by
	// name do not decide which package provides it. It is nil if the first candidates may be selected.
	Undecided error
	// Others are repositories of further packages that provide the kind. They take precedence if packages require them by
	// name.
	Others []string
	// Conflicting reports, beside the error that there is no candidate, that the packages that provide the kind conflict
	// with packages for other kinds. A reference to all kinds of a group does not include the kind then.
	Conflicting bool
}

// A Provider is a package that provides a kind.
type Provider struct {
	Repository string
	// Constraint accepts the versions that provide the kind.
	Constraint string
}

// virtualPackage is the virtual package of a kind: a version of it is the selection of a provider.
type virtualPackage struct {
	kind      dependency.KindRef
	providers Providers
	err       error
	// together are the kinds with which the providers were selected.
	together []dependency.KindRef
}

// virtualPrefix starts the name of a virtual package. No repository has a space in its name.
const virtualPrefix = "kind "

func virtualName(k dependency.KindRef) string { return virtualPrefix + k.String() }

func isVirtual(pkg string) bool { return strings.HasPrefix(pkg, virtualPrefix) }

// tag returns the version of the virtual package that selects a candidate. The solver prefers the highest version,
// which is the best candidate.
func (v *virtualPackage) tag(candidate int) string {
	return strconv.Itoa(len(v.providers.Candidates)-candidate) + ".0.0"
}

// provider returns the candidate that a version of the virtual package selects.
func (v *virtualPackage) provider(tag string) (Provider, bool) {
	for i, p := range v.providers.Candidates {
		if v.tag(i) == tag {
			return p, true
		}
	}
	return Provider{}, false
}

// versions returns all versions of the virtual package.
func (v *virtualPackage) versions() ([]string, error) {
	var out []string
	for i := range v.providers.Candidates {
		out = append(out, v.tag(i))
	}
	return out, v.err
}

// VersionName implements [solver.VirtualSource].
func (s *source) VersionName(pkg, tag string) (string, bool) {
	if !isVirtual(pkg) {
		return "", false
	}
	if v := s.knownVirtual(pkg); v != nil {
		if p, ok := v.provider(tag); ok {
			return "from " + p.Repository, true
		}
	}
	return tag, true
}

// knownVirtual returns a virtual package that a dependency has named.
func (s *source) knownVirtual(pkg string) *virtualPackage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.virtual[pkg]
}

// virtualDependencies returns the dependencies on the virtual packages of required kinds.
func (s *source) virtualDependencies(kinds []dependency.KindRef) []dependency.Dependency {
	if s.resolver.Kinds == nil {
		return nil
	}
	var out []dependency.Dependency
	for _, k := range kinds {
		for _, v := range s.virtualPackages(k) {
			out = append(out, dependency.Dependency{Package: virtualName(v.kind)})
		}
	}
	return out
}

// virtualPackages returns the virtual packages of the kinds that a reference means. Kinds whose providers conflict with
// those of other kinds of the group are not included, unless there is no other kind.
func (s *source) virtualPackages(k dependency.KindRef) []*virtualPackage {
	var all, out []*virtualPackage
	kinds := s.expand(k)
	for _, one := range kinds {
		v := s.addVirtual(one, kinds)
		all = append(all, v)
		if !v.providers.Conflicting {
			out = append(out, v)
		}
	}
	if !k.IsAll() || len(out) == 0 {
		return all
	}
	return out
}

// expand returns the kinds that a reference means. If they are not known, it returns the reference, which has no
// provider.
func (s *source) expand(k dependency.KindRef) []dependency.KindRef {
	if !k.IsAll() {
		return []dependency.KindRef{k}
	}
	all, err := s.resolver.Kinds.Expand(s.ctx, k, s.kinds.recorded)
	if err != nil || len(all) == 0 {
		return []dependency.KindRef{k}
	}
	return all
}

// addVirtual finds the providers of a kind once, together with those of other kinds, and returns its virtual package.
func (s *source) addVirtual(k dependency.KindRef, with []dependency.KindRef) *virtualPackage {
	name := virtualName(k)
	if v := s.knownVirtual(name); v != nil {
		return v
	}
	v := &virtualPackage{kind: k, together: s.kinds.with(with)}
	v.providers, v.err = s.resolver.Kinds.Providers(s.ctx, KindQuery{
		Kind: k, Recorded: s.kinds.recorded, Present: s.kinds.present, Together: v.together,
	})
	v.providers.Candidates = slices.Clone(v.providers.Candidates)
	for i, p := range v.providers.Candidates {
		if p.Constraint == "" && p.Repository == s.kinds.recorded[k] {
			v.providers.Candidates[i].Constraint = s.kinds.constraints[k]
		}
		v.providers.Candidates[i].Repository = s.identity(p.Repository)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.virtual[name] == nil {
		s.virtual[name] = v
	}
	return s.virtual[name]
}

// dependenciesOfVirtual returns the dependency of a version of a virtual package.
func (s *source) dependenciesOfVirtual(pkg, tag string) ([]dependency.Dependency, error) {
	p, ok := s.knownVirtual(pkg).provider(tag)
	if !ok {
		return nil, ErrUnusable.New(nil, "%s has no version %s", pkg, tag)
	}
	return []dependency.Dependency{{Package: p.Repository, Constraint: p.Constraint}}, nil
}

// kindChoices are the selections of providers that the rounds of a resolution depend on.
type kindChoices struct {
	recorded map[dependency.KindRef]string
	// constraints are those of the recorded providers.
	constraints map[dependency.KindRef]string
	present     map[string]bool
	// together are the kinds of former solutions, whose providers are selected together.
	together map[dependency.KindRef]bool
}

// with returns the kinds whose providers are selected together, and further kinds, in order.
func (c kindChoices) with(kinds []dependency.KindRef) []dependency.KindRef {
	all := maps.Clone(c.together)
	for _, k := range kinds {
		all[k] = true
	}
	return slices.SortedFunc(
		maps.Keys(all), func(a, b dependency.KindRef) int { return strings.Compare(a.String(), b.String()) },
	)
}

func newKindChoices(q Request) kindChoices {
	out := kindChoices{
		recorded: map[dependency.KindRef]string{}, constraints: map[dependency.KindRef]string{}, present: map[string]bool{},
		together: map[dependency.KindRef]bool{},
	}
	locked := lockfile.File{Packages: q.Locked}
	for _, selected := range []map[dependency.KindRef]dependency.Dependency{locked.ProvidersOfKinds(), q.Provides} {
		for k, d := range selected {
			out.recorded[k], out.constraints[k] = d.Package, d.Constraint
		}
	}
	for _, p := range q.Locked {
		out.present[p.Repository] = true
	}
	return out
}

// virtualRoots returns roots in which a requested kind is the virtual package of the kind, and of each kind of a group.
func (s *source) virtualRoots(roots []dependency.Root) ([]dependency.Root, error) {
	var out []dependency.Root
	for _, root := range roots {
		if root.CRD == "" || root.Package != "" {
			out = append(out, root)
			continue
		}
		k, err := dependency.ParseKindRef(root.CRD)
		if err != nil {
			return nil, err
		}
		for _, d := range s.virtualDependencies([]dependency.KindRef{k}) {
			v := s.knownVirtual(d.Package)
			if v.err != nil {
				return nil, v.err
			}
			out = append(out, dependency.Root{Package: d.Package, By: root.By, CRD: v.kind.String()})
		}
	}
	return out, nil
}

// reconsider reports whether a solution decides providers of kinds differently than the round that found it: packages
// that other packages require by name take precedence, and one package provides a kind in all its API versions.
func (s *source) reconsider(picks []solver.Pick, roots []dependency.Root) bool {
	s.wait() // Requests that are in progress read the choices.
	named := requiredByName(picks, roots)
	changed := false
	for _, v := range s.selectedVirtual(picks) {
		for _, repository := range v.known(s) {
			if named[repository] && !s.kinds.present[repository] {
				s.kinds.present[repository] = true
				changed = true
			}
		}
	}
	changed = s.selectTogether(picks) || changed
	return s.reconcileVersions(picks) || changed
}

// known returns the repositories of all packages that provide the kind.
func (v *virtualPackage) known(s *source) []string {
	var out []string
	for _, p := range v.providers.Candidates {
		out = append(out, p.Repository)
	}
	for _, repository := range v.providers.Others {
		out = append(out, s.identity(repository))
	}
	return out
}

// selectTogether records the kinds of a solution whose providers were not selected together: several packages, which
// can conflict, or a kind whose provider another kind can decide.
func (s *source) selectTogether(picks []solver.Pick) (changed bool) {
	all := s.selectedVirtual(picks)
	first, needed := "", false
	for _, v := range all {
		p := s.selectedProvider(picks, v)
		first = cmp.Or(first, p.Repository)
		needed = needed || p.Repository != first || v.providers.Undecided != nil
	}
	if !needed || len(all) < 2 {
		return false
	}
	known := func(in *virtualPackage) bool {
		return !slices.ContainsFunc(all, func(v *virtualPackage) bool { return !slices.Contains(in.together, v.kind) })
	}
	if !slices.ContainsFunc(all, func(v *virtualPackage) bool { return !known(v) }) {
		return false
	}
	for _, v := range all {
		changed = changed || !s.kinds.together[v.kind]
		s.kinds.together[v.kind] = true
	}
	return changed
}

// reconcileVersions records the provider of a kind that is required in several API versions, if different packages were
// selected for them.
func (s *source) reconcileVersions(picks []solver.Pick) (changed bool) {
	first := map[string]string{}
	for _, v := range s.selectedVirtual(picks) {
		key := strings.ToLower(v.kind.WithoutVersion())
		p := s.selectedProvider(picks, v)
		if first[key] == "" {
			first[key] = p.Repository
		}
		common := first[key]
		if p.Repository == common || s.kinds.recorded[v.kind] != "" ||
			!slices.ContainsFunc(v.providers.Candidates, func(p Provider) bool { return p.Repository == common }) {
			continue
		}
		s.kinds.recorded[v.kind] = common
		changed = true
	}
	return changed
}

// selectedVirtual returns the virtual packages of a solution, in its order.
func (s *source) selectedVirtual(picks []solver.Pick) []*virtualPackage {
	var out []*virtualPackage
	for _, pick := range picks {
		if isVirtual(pick.Package) {
			out = append(out, s.knownVirtual(pick.Package))
		}
	}
	return out
}

// selectedProvider returns the provider of a kind in a solution.
func (s *source) selectedProvider(picks []solver.Pick, v *virtualPackage) Provider {
	at := slices.IndexFunc(picks, func(p solver.Pick) bool { return p.Package == virtualName(v.kind) })
	p, _ := v.provider(picks[at].Tag)
	return p
}

// requiredByName returns the packages of a solution that roots or packages require by name.
func requiredByName(picks []solver.Pick, roots []dependency.Root) map[string]bool {
	out := map[string]bool{}
	for _, r := range roots {
		out[r.Package] = !r.Optional
	}
	for _, pick := range picks {
		if isVirtual(pick.Package) {
			continue
		}
		for _, d := range pick.Dependencies {
			if !d.Optional && !isVirtual(d.Package) {
				out[d.Package] = true
			}
		}
	}
	return out
}

// undecided returns the error of the first kind of a solution whose provider the user must select. The others are
// noted.
func (s *source) undecided(picks []solver.Pick) error {
	var first error
	for _, v := range s.selectedVirtual(picks) {
		switch {
		case v.providers.Undecided == nil:
		case first == nil:
			first = v.providers.Undecided
		default:
			s.note(fmt.Sprintf("the provider of %s must also be selected", v.kind))
		}
	}
	return first
}

// withProviders returns dependencies in which the providers of kinds replace the virtual packages.
func (s *source) withProviders(picks []solver.Pick, all []dependency.Dependency) []dependency.Dependency {
	out := slices.Clone(all)
	for i, d := range out {
		if isVirtual(d.Package) {
			v := s.knownVirtual(d.Package)
			p := s.selectedProvider(picks, v)
			out[i] = dependency.Dependency{Package: p.Repository, Constraint: p.Constraint, CRD: v.kind.String()}
		}
	}
	slices.SortStableFunc(out, func(a, b dependency.Dependency) int { return strings.Compare(a.Package, b.Package) })
	return out
}

// rootsWithProviders returns roots in which the providers of kinds replace the virtual packages.
func (s *source) rootsWithProviders(picks []solver.Pick, roots []dependency.Root) []dependency.Root {
	out := slices.Clone(roots)
	for i, r := range out {
		if isVirtual(r.Package) {
			p := s.selectedProvider(picks, s.knownVirtual(r.Package))
			out[i].Package, out[i].Constraint = p.Repository, p.Constraint
		}
	}
	return out
}

// recordProviders sets the kinds that each package of a lock file provides for others.
func recordProviders(f *lockfile.File) {
	kinds := map[string][]dependency.KindRef{}
	add := func(pkg, text string) {
		if k, err := dependency.ParseKindRef(text); err == nil && !slices.Contains(kinds[pkg], k) {
			kinds[pkg] = append(kinds[pkg], k)
		}
	}
	for _, r := range f.Roots {
		add(r.Package, r.CRD)
	}
	for _, p := range f.Packages {
		for _, d := range p.Dependencies {
			add(d.Package, d.CRD)
		}
	}
	for i := range f.Packages {
		f.Packages[i].Provides = kinds[f.Packages[i].Repository]
		slices.SortFunc(
			f.Packages[i].Provides, func(a, b dependency.KindRef) int { return strings.Compare(a.String(), b.String()) },
		)
	}
}
