// Package mirror copies the packages of an index to another registry, with their statuses and all other artifacts that refer to them, and
// the index itself, byte for byte.
//
// The index is copied last. The index in the target is therefore the state of the mirror: a later run, or a run after an interruption,
// copies only the packages that differ between it and the source, and content that the target has is not copied again.
package mirror

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// ErrMirror is the code for a package that cannot be mirrored.
var ErrMirror = errcode.Code{
	Name: "MirrorPackage", Class: errcode.Unavailable,
	Cause: "A version of a package cannot be copied to the mirror. The versions that were copied remain.",
	Fix:   "Correct the cause in the message, and run the command again: it continues.",
}

// Codes returns the error codes that this package defines.
func Codes() []errcode.Code { return []errcode.Code{ErrMirror} }

// Options configure a mirror.
type Options struct {
	// Client reads the source and writes the target.
	Client *remote.Client
	// Target is the host of the target, with an optional prefix of repositories.
	Target string
	// Kinds limits the mirror to packages that define one of the kinds, as KIND or KIND.GROUP; empty means all packages. The index is not
	// copied then, because it contains the other packages.
	Kinds []string
	// Progress, if set, is called after each version.
	Progress func(reference string)
}

// Result counts what a run has copied.
type Result struct {
	Packages, Versions int
}

// Run copies the packages that differ between two states of an index. The former state is that of the mirror; nil copies everything.
func Run(ctx context.Context, o Options, former, current *catalog.Catalog) (Result, error) {
	m := &mirror{Options: o}
	for i := range current.Packages {
		p := &current.Packages[i]
		if !m.selects(current, p.Repository) {
			continue
		}
		h := current.History(p.Repository)
		if h == nil || former != nil && sameVersions(former.History(p.Repository), h) {
			continue
		}
		if err := m.copyPackage(ctx, h); err != nil {
			return m.result, err
		}
		m.result.Packages++
	}
	return m.result, nil
}

// sameVersions reports whether a package has the same versions with the same statuses in two states.
func sameVersions(a, b *catalog.History) bool {
	return a != nil && slices.EqualFunc(a.Versions, b.Versions, func(x, y catalog.Version) bool {
		return x.Tag == y.Tag && x.Digest == y.Digest && (x.Status == nil) == (y.Status == nil) && (x.Status == nil || *x.Status == *y.Status)
	})
}

type mirror struct {
	Options
	result Result
}

// selects reports whether a package defines one of the kinds.
func (m *mirror) selects(c *catalog.Catalog, repository string) bool {
	if len(m.Kinds) == 0 {
		return true
	}
	for _, name := range m.Kinds {
		kind, group, _ := strings.Cut(name, ".")
		if slices.ContainsFunc(c.Lookup(group, kind), func(k catalog.Kind) bool { return k.Repository == repository }) {
			return true
		}
	}
	return false
}

// target returns the reference of a repository in the mirror.
func (m *mirror) target(from oci.Reference) (oci.Reference, error) {
	return oci.ParseReference(strings.TrimSuffix(m.Target, "/")+"/"+from.RepositoryPath()+":latest", oci.ParseOptions{})
}

func (m *mirror) copyPackage(ctx context.Context, h *catalog.History) error {
	from, err := oci.ParseReference(h.Repository+":latest", oci.ParseOptions{})
	if err != nil {
		return err
	}
	to, err := m.target(from)
	if err != nil {
		return err
	}
	tags, err := m.Client.Tags(ctx, from)
	if err != nil {
		return ErrMirror.New(err, "cannot list the versions of %s", h.Repository)
	}
	for _, v := range h.Versions {
		if v.Digest.IsZero() || v.Status != nil && v.Status.State == catalog.Removed {
			continue
		}
		if err := m.copyVersion(ctx, from.WithTag(v.Tag).WithDigest(v.Digest), to); err != nil {
			return ErrMirror.New(err, "cannot copy %s:%s", h.Repository, v.Tag)
		}
		m.result.Versions++
		if m.Progress != nil {
			m.Progress(h.Repository + ":" + v.Tag)
		}
	}
	for _, tag := range tags {
		if !isArtifact(tag) {
			continue
		}
		if err := m.copyTag(ctx, from.WithTag(tag), to.WithTag(tag)); err != nil {
			return ErrMirror.New(err, "cannot copy %s:%s", h.Repository, tag)
		}
	}
	return nil
}

// isArtifact reports whether a tag belongs to a status or a signature.
func isArtifact(tag string) bool {
	_, isStatus := catalog.ParseStatusTag(tag)
	return isStatus || strings.HasPrefix(tag, "sha256-")
}

// copyVersion copies a version and its referrers, unless the target has the version.
func (m *mirror) copyVersion(ctx context.Context, from, to oci.Reference) error {
	if current, err := m.Client.Resolve(ctx, to.WithTag(from.Tag)); err != nil || current.Digest != from.Digest {
		a, err := m.Client.Artifact(ctx, from)
		if err != nil {
			return err
		}
		if _, err := m.Client.Push(ctx, to.WithTag(from.Tag), a); err != nil {
			return err
		}
	}
	referrers, err := m.Client.Referrers(ctx, from, "")
	if err != nil {
		return err
	}
	for _, d := range referrers {
		a, err := m.Client.Artifact(ctx, from.WithTag("").WithDigest(d.Digest))
		if err != nil {
			return err
		}
		if _, err := m.Client.Attach(ctx, to, a); err != nil {
			return err
		}
	}
	return nil
}

// copyTag copies an artifact under a tag. A tag that was deleted since the list is omitted.
func (m *mirror) copyTag(ctx context.Context, from, to oci.Reference) error {
	a, err := m.Client.Artifact(ctx, from)
	if errors.Is(err, remote.ErrTagNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if current, err := m.Client.Resolve(ctx, to); err == nil && current.Digest == a.Root().Digest {
		return nil
	}
	_, err = m.Client.Push(ctx, to, a)
	return err
}

// CopyIndex copies an index with its signatures under its tag, after all packages. It does nothing for a mirror of some kinds.
func CopyIndex(ctx context.Context, o Options, index oci.Reference) error {
	if len(o.Kinds) > 0 {
		return nil
	}
	m := &mirror{Options: o}
	to, err := m.target(index)
	if err != nil {
		return err
	}
	if err := m.copyState(ctx, index, to); err != nil {
		return ErrMirror.New(err, "cannot copy the index %s", index)
	}
	return nil
}

// copyState copies the current state of an index after its signatures, so that no client finds the state without them.
func (m *mirror) copyState(ctx context.Context, from, to oci.Reference) error {
	state, err := m.Client.Resolve(ctx, from)
	if err != nil {
		return err
	}
	signatures := indexer.SignatureTag(state.Digest)
	if err := m.copyTag(ctx, from.WithTag(signatures), to.WithTag(signatures)); err != nil {
		return err
	}
	if current, err := m.Client.Resolve(ctx, to.WithTag(from.Tag)); err == nil && current.Digest == state.Digest {
		return nil
	}
	a, err := m.Client.Artifact(ctx, from.WithDigest(state.Digest))
	if err != nil {
		return err
	}
	_, err = m.Client.Push(ctx, to.WithTag(from.Tag), a)
	return err
}

// TargetIndex returns the reference of the index in the mirror.
func TargetIndex(o Options, index oci.Reference) (oci.Reference, error) {
	m := &mirror{Options: o}
	to, err := m.target(index)
	return to.WithTag(index.Tag), err
}
