package resolver

import (
	"context"
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// ErrWithdrawn is the code for a version that new solutions do not select: it was yanked, retracted or deprecated. Its
// class is NotFound, because another version may be available.
var ErrWithdrawn = errcode.Code{
	Name: "WithdrawnVersion", Class: errcode.NotFound,
	Cause: "A version was yanked, retracted or deprecated. Lock files and installed packages with it keep working.",
	Fix:   "Use the replacement in the message, or request the version exactly.",
}

// withdrawn is the error for a version with a status. The solver selects another version.
type withdrawn struct {
	err    *errcode.Error
	reason string
}

// Error implements error.
func (w *withdrawn) Error() string { return w.err.Error() }

// Unwrap returns the error with its code.
func (w *withdrawn) Unwrap() error { return w.err }

// WhyNot implements [solver.Explained].
func (w *withdrawn) WhyNot() string { return "it is " + w.reason }

// checkStatus returns an error for a version that must not be selected. It is called only for versions that the solver
// would select, and reads the status only if the tags of the repository show that there is one. A version that a root
// names exactly, and one that is installed, can always be selected. Deprecated versions can be selected if there is no
// other solution.
func (s *source) checkStatus(pkg, pin string, m Metadata) error {
	if m.Digest.IsZero() {
		return nil
	}
	status, err := s.statusOf(pkg, pin, m)
	if err != nil || status == nil {
		return err
	}
	reason := Describe(*status)
	switch {
	case s.named[namedVersion{pkg, pin}], s.installed[namedVersion{pkg, pin}] == m.Digest,
		status.State == catalog.Deprecated && s.deprecated:
		s.noteWithdrawn(fmt.Sprintf("%s %s is %s", pkg, pin, reason))
		return nil
	case status.State == catalog.Deprecated:
		s.mu.Lock()
		s.skipped = true
		s.mu.Unlock()
	}
	return &withdrawn{ErrWithdrawn.New(nil, "%s %s is %s", pkg, pin, reason), reason}
}

// statusOf returns the status of a version: from its status artifact, or from the retractions of the newest version if
// that was read.
func (s *source) statusOf(pkg, pin string, m Metadata) (*catalog.Status, error) {
	s.mu.Lock()
	list := s.lists[pkg]
	s.mu.Unlock()
	if list == nil {
		return nil, nil
	}
	tags, err := list.wait()
	if err != nil {
		return nil, nil //nolint:nilerr // The solver gets the error of the list.
	}
	ref, err := reference(pkg, pin)
	if err != nil {
		return nil, err
	}
	status, err := s.resolver.Registry.Status(s.ctx, ref.WithDigest(m.Digest), tags.Tags)
	if err != nil || status != nil {
		return status, err
	}
	return s.retraction(pkg, pin, list, tags.Tags), nil
}

// retraction returns the status of a version by the retractions of the newest release of a list, and nil if that was
// not read. Few versions retract others, so the list is searched for its newest release only if the newest one that was
// read retracts any.
func (s *source) retraction(pkg, pin string, list *task[Versions], tags []string) *catalog.Status {
	s.mu.Lock()
	newest := s.newestRead[pkg]
	s.mu.Unlock()
	t, ok := s.lookup(pkg, newest)
	if !ok {
		return nil
	}
	m, err := t.wait()
	if err != nil || m.Meta.Annotations[catalog.AnnotationRetract] == "" || s.newestOf(list, tags) != newest {
		return nil
	}
	return RetractionBy(m, version.ParsePin(pin).Tag)
}

// newestOf returns the newest release of a list, or "". It searches each list once, because a solution can need it for
// many versions.
func (s *source) newestOf(list *task[Versions], tags []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest, known := s.newest[list]
	if !known {
		newest = newestRelease(tags...)
		s.newest[list] = newest
	}
	return newest
}

// releases accepts all versions but prereleases.
var releases = version.ParseConstraint("*")

// newestRelease returns the newest release among tags, or "".
func newestRelease(tags ...string) string {
	found := releases.Filter(tags)
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// RetractionBy returns the status of a tag by the retractions of the newest version, and nil if it has none.
func RetractionBy(newest Metadata, tag string) *catalog.Status {
	retractions, err := catalog.ParseRetractions(newest.Meta.Annotations[catalog.AnnotationRetract])
	if err != nil {
		return nil
	}
	for _, r := range retractions {
		if version.ParseConstraint(r.Versions).Accepts(tag) {
			return &catalog.Status{State: catalog.Retracted, Reason: r.Reason, Message: r.Message, ReplacedBy: r.ReplacedBy}
		}
	}
	return nil
}

// StatusOf returns the status of an installed or locked version, which has a tag and a digest: that of its status
// artifact, or else a retraction by the newest release of its repository, which can retract itself. It returns nil if
// there is none, or if the registry has no statuses. The tags are those of the repository.
func StatusOf(ctx context.Context, registry Registry, of oci.Reference, tags []string) (*catalog.Status, error) {
	if of.Digest.IsZero() {
		return nil, nil
	}
	status, err := registry.Status(ctx, of, tags)
	if err != nil || status != nil {
		return status, err
	}
	newest, err := NewestRelease(ctx, registry, of, tags)
	if err != nil || newest == nil {
		return nil, err
	}
	return RetractionBy(*newest, of.Tag), nil
}

// NewestRelease returns the metadata of the newest release of a repository, whose tags are given, and nil if it has no
// release.
func NewestRelease(ctx context.Context, registry Registry, repository oci.Reference, tags []string) (*Metadata, error) {
	tag := newestRelease(tags...)
	if tag == "" {
		return nil, nil
	}
	newest, err := registry.Metadata(ctx, repository.WithTag(tag))
	return &newest, err
}

// Describe returns a status for a message, such as "yanked (broken): loses data; use v1.1.1 instead".
func Describe(s catalog.Status) string {
	text := string(s.State)
	if s.Reason != "" && s.Reason != catalog.Other {
		text += " (" + string(s.Reason) + ")"
	}
	if s.Message != "" {
		text += ": " + s.Message
	}
	if s.ReplacedBy != "" {
		text += "; use " + s.ReplacedBy + " instead"
	}
	return text
}

// namedVersion is a version that a root names exactly.
type namedVersion struct{ pkg, pin string }

// namedVersions returns the versions that roots name exactly.
func namedVersions(roots []dependency.Root) map[namedVersion]bool {
	named := map[namedVersion]bool{}
	for _, root := range roots {
		pin := root.Constraint
		if !root.Exact {
			pin = version.ParseConstraint(root.Constraint).Pinned()
		}
		if pin != "" {
			named[namedVersion{root.Package, pin}] = true
		}
	}
	return named
}
