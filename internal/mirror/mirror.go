// Package mirror copies the packages of an index to another registry, with their statuses and all other artifacts that
// refer to them, and the index itself, byte for byte.
//
// A run omits what the source does not have or does not let the user read, and what cannot be copied because of its
// content, and fails with it at the end, after everything else was copied. The index is copied nevertheless: it is for
// finding packages and names the same missing ones in the source, and without it one such package would keep the
// statuses of all others from the mirror, until the index expires.
//
// The state of the index whose packages were copied is copied last, whatever the source has published since. Every run
// compares the digests of all versions with the target and copies those that are missing, so a run after an
// interruption continues, and versions that the target lost are copied again. Blobs are not compared, except by a run
// that verifies: it reads everything in the target. If both registries are servers of xpkg, which state when a
// repository changes, a run skips the repositories in which a former run has found nothing to copy, and which have not
// changed since in either registry.
package mirror

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// ErrMirror is the code for a package that cannot be mirrored.
var ErrMirror = errcode.Code{
	Name: "MirrorPackage", Class: errcode.Unavailable,
	Cause: "A version of a package, or the index, cannot be copied to the mirror. The versions that were copied remain.",
	Fix:   "Correct the cause in the message, and run the command again: it continues.",
}

// Codes returns the error codes that this package defines.
func Codes() []errcode.Code { return []errcode.Code{ErrDamaged, ErrMirror, ErrUnreadable} }

// Options configure a mirror.
type Options struct {
	// Client reads the source and writes the target.
	Client *remote.Client
	// Target is the host of the target, with an optional prefix of repositories.
	Target string
	// Kinds limits the mirror to packages that define one of the kinds, as KIND or KIND.GROUP; empty means all packages.
	// The index is not copied then, because it contains the other packages.
	Kinds []string
	// Records keeps the repositories that are complete, so that a later run skips them while they do not change; nil means
	// that every run compares all versions.
	Records *store.Store
	// Verify reads everything in the target, and copies content that is missing or damaged there again.
	Verify bool
	// Progress, if set, is called after each version that was copied, one call at a time.
	Progress func(reference string)
}

// Result counts what a run has copied.
type Result struct {
	Packages, Versions int
	// Artifacts are statuses, signatures, and other artifacts that belong to a version.
	Artifacts int
}

// versionsAtOnce is the number of versions that are compared or copied at the same time.
const versionsAtOnce = 8

// Run copies the versions of a state of an index that the target lacks, and the artifacts that belong to them. It fails
// with ErrUnreadable, or ErrDamaged, if it could copy everything but what the source does not have or does not let the
// user read, and what the target, or a limit, refuses: the index can be copied then.
func Run(ctx context.Context, o Options, current *catalog.Catalog) (Result, error) {
	m := &mirror{Options: o, packages: map[string]bool{}, artifacts: map[artifact]bool{}}
	if err := m.checkKinds(current); err != nil {
		return Result{}, err
	}
	repositories, err := m.repositories(current)
	if err != nil {
		return Result{}, err
	}
	before, err := m.currents(ctx, repositories)
	if err != nil {
		return Result{}, err
	}
	changed := m.changed(ctx, repositories, before)
	err = m.each(ctx, changed, m.copyVersions)
	if err == nil {
		// The statuses are read after the versions, so that those of versions are included that were deleted meanwhile.
		err = m.each(ctx, changed, m.copyTags)
	}
	if err == nil {
		err = m.remember(ctx, changed, before)
	}
	if err == nil {
		err = m.errIncomplete()
	}
	return Result{Packages: len(m.packages), Versions: m.versions, Artifacts: len(m.artifacts)}, err
}

// each starts tasks for each repository, and waits until all of them have ended.
func (m *mirror) each(
	ctx context.Context, repositories []repository, start func(context.Context, *errgroup.Group, repository),
) error {
	g, running := errgroup.WithContext(ctx)
	g.SetLimit(versionsAtOnce)
	for _, r := range repositories {
		start(running, g, r)
	}
	return errors.Join(g.Wait(), ctx.Err())
}

type mirror struct {
	Options
	mu        sync.Mutex
	packages  map[string]bool
	versions  int
	artifacts map[artifact]bool
	// unreadable is what the source does not have, or does not let the user read.
	unreadable []unreadable
	// damaged are the manifests that the target does not serve although it has accepted them.
	damaged []string
}

// repository is a repository of the source, with the one of the mirror. The references have no tag.
type repository struct {
	*catalog.History
	from, to oci.Reference
}

// artifact is an artifact of a repository that was copied.
type artifact struct {
	repository string
	digest     oci.Digest
}

// copied counts an artifact that was copied.
func (m *mirror) copied(from oci.Reference, d oci.Digest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.packages[from.Name()] = true
	m.artifacts[artifact{from.Name(), d}] = true
}

// copiedVersion counts a version that was copied.
func (m *mirror) copiedVersion(from oci.Reference) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.packages[from.Name()] = true
	m.versions++
	if m.Progress != nil {
		m.Progress(from.Name() + ":" + from.Tag)
	}
}

// repositories returns the repositories of the packages to mirror.
func (m *mirror) repositories(current *catalog.Catalog) ([]repository, error) {
	var found []repository
	sources := map[string]string{}
	for i := range current.Packages {
		name := current.Packages[i].Repository
		h := current.History(name)
		if h == nil || !m.selects(current, name) {
			continue
		}
		from, err := oci.ParseReference(name, oci.ParseOptions{AllowUntagged: true})
		if err != nil {
			return nil, err
		}
		to, err := m.target(from)
		if err != nil {
			return nil, err
		}
		if other, taken := sources[to.Name()]; taken {
			return nil, errSameTarget(to, other, name)
		}
		sources[to.Name()] = name
		found = append(found, repository{h, from, to})
	}
	return found, nil
}

// errSameTarget refuses packages of two registries that would share a repository in the mirror, where the versions of
// one would replace those of the other.
func errSameTarget(to oci.Reference, first, second string) error {
	return ErrMirror.New(nil, "%s and %s would both be copied to %s", first, second, to.Name()).
		WithDo("Mirror an index for each registry, each with its own prefix in --to. Nothing was copied.")
}

// lookup returns the kinds with a name, KIND or KIND.GROUP.
func lookup(c *catalog.Catalog, name string) []catalog.Kind {
	kind, group, _ := strings.Cut(name, ".")
	return c.Lookup(group, kind)
}

// checkKinds checks that a package defines each of the kinds.
func (m *mirror) checkKinds(c *catalog.Catalog) error {
	for _, name := range m.Kinds {
		if len(lookup(c, name)) == 0 {
			return indexer.ErrNothingFound.New(nil, "no package of the index defines the kind %.200q", name).
				WithDo("Find the name with `xpkg search --kind`.")
		}
	}
	return nil
}

// selects reports whether a package defines one of the kinds.
func (m *mirror) selects(c *catalog.Catalog, repository string) bool {
	if len(m.Kinds) == 0 {
		return true
	}
	for _, name := range m.Kinds {
		if slices.ContainsFunc(lookup(c, name), func(k catalog.Kind) bool { return k.Repository == repository }) {
			return true
		}
	}
	return false
}

// target returns the reference of a repository in the mirror.
func (m *mirror) target(from oci.Reference) (oci.Reference, error) {
	return oci.ParseReference(strings.TrimSuffix(m.Target, "/")+"/"+
		from.RepositoryPath(), oci.ParseOptions{AllowUntagged: true})
}

// copyVersions starts copies of the versions of a repository.
func (m *mirror) copyVersions(ctx context.Context, g *errgroup.Group, r repository) {
	for _, v := range r.Versions {
		if v.Digest.IsZero() || v.Status != nil && v.Status.State == catalog.Removed {
			continue
		}
		g.Go(func() error {
			if err := m.pass(r, v.Tag, m.copyVersion(ctx, r.from.WithTag(v.Tag).WithDigest(v.Digest), r.to)); err != nil {
				return ErrMirror.New(err, "cannot copy %s:%s", r.Repository, v.Tag)
			}
			return nil
		})
	}
}

// copyVersion copies a version unless the target has it, and its referrers. A version that was deleted since the state
// of the index leaves its status only.
func (m *mirror) copyVersion(ctx context.Context, from, to oci.Reference) error {
	current, err := m.Client.Resolve(ctx, to.WithTag(from.Tag))
	isThere, err := m.isIntact(ctx, to.WithDigest(from.Digest), err == nil && current.Digest == from.Digest)
	if err != nil {
		return err
	}
	if !isThere {
		a, err := m.artifact(ctx, from)
		if errors.Is(err, oci.ErrManifestNotFound) && m.isRemoved(ctx, from) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := m.push(ctx, to.WithTag(from.Tag), a); err != nil {
			return err
		}
		m.copiedVersion(from)
	}
	return m.copyReferrers(ctx, from, to)
}

// isRemoved reports whether a version has the status removed.
func (m *mirror) isRemoved(ctx context.Context, from oci.Reference) bool {
	s, err := packagestatus.Read(ctx, m.Client, from)
	return err == nil && s != nil && s.State == catalog.Removed
}

// mostReferrers limits the artifacts that refer to one version, directly or through others.
const mostReferrers = 10000

// copyReferrers copies the artifacts that refer to a manifest, and those that refer to these, unless the target has
// them. It costs a request for each manifest, and another one for each that has referrers. An artifact whose content
// cannot be copied does not keep the others from the mirror: it is the error in the end.
func (m *mirror) copyReferrers(ctx context.Context, from, to oci.Reference) error {
	subjects := []oci.Digest{from.Digest}
	var failed error
	for i := 0; i < len(subjects); i++ {
		found, err := m.Client.CertainReferrers(ctx, from.WithTag("").WithDigest(subjects[i]))
		if err != nil {
			return fromSource(err)
		}
		if len(found) == 0 {
			continue
		}
		there, err := m.Client.Referrers(ctx, to.WithTag("").WithDigest(subjects[i]), "")
		if err != nil {
			return err
		}
		for _, d := range found {
			if slices.Contains(subjects, d.Digest) {
				continue
			}
			if len(subjects) > mostReferrers {
				return oci.ErrManifestTooLarge.New(nil, "more than %d artifacts refer to %s", mostReferrers, from.Digest.Short())
			}
			isThere, err := m.isIntact(ctx, to.WithTag("").WithDigest(d.Digest), hasDigest(there, d.Digest))
			if err != nil {
				return err
			}
			if !isThere {
				err := m.copyReferrer(ctx, from.WithTag("").WithDigest(d.Digest), to, subjects[i])
				if isOfContent(err) {
					failed = cmp.Or(failed, err)
					continue
				}
				if err != nil {
					return err
				}
			}
			subjects = append(subjects, d.Digest)
		}
	}
	return failed
}

func hasDigest(descriptors []oci.Descriptor, d oci.Digest) bool {
	return slices.ContainsFunc(descriptors, func(o oci.Descriptor) bool { return o.Digest == d })
}

// copyReferrer copies an artifact that refers to a subject. It omits one that was deleted since the list, and one that
// the list has although it does not refer to the subject: without the referrers API, any client can write the list.
func (m *mirror) copyReferrer(ctx context.Context, from, to oci.Reference, subject oci.Digest) error {
	a, err := m.artifact(ctx, from)
	if errors.Is(err, oci.ErrManifestNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	_, doc, err := oci.ReadDocument(ctx, a, a.Root(), m.Client.Limits())
	if err != nil {
		return err
	}
	if doc.Subject == nil || doc.Subject.Digest != subject {
		return nil
	}
	if _, err := m.Client.Attach(ctx, to, a); err != nil {
		return err
	}
	m.copied(from, from.Digest)
	return m.checkPushed(ctx, to.WithTag("").WithDigest(from.Digest))
}

// copyTags starts a copy of the tags of a repository that belong to a status or a signature.
func (m *mirror) copyTags(ctx context.Context, g *errgroup.Group, r repository) {
	g.Go(func() error {
		tags, err := m.Client.Tags(ctx, r.from)
		if err != nil {
			if err = m.pass(r, "", fromSource(err)); err == nil {
				return nil
			}
			return ErrMirror.New(err, "cannot list the versions of %s", r.Repository)
		}
		for _, tag := range tags {
			if err := m.pass(r, tag, m.copyArtifact(ctx, r, tag)); err != nil {
				return ErrMirror.New(err, "cannot copy %s:%s", r.Repository, tag)
			}
		}
		return nil
	})
}

// copyArtifact copies the content of a tag that belongs to another manifest, such as a status or a signature. Under the
// tag of a list of referrers, the mirror can have more, so they are copied one by one.
func (m *mirror) copyArtifact(ctx context.Context, r repository, tag string) error {
	subject, suffix, isArtifact := oci.ParseArtifactTag(tag)
	if !isArtifact {
		return nil
	}
	if suffix == "" {
		return m.copyReferrers(ctx, r.from.WithDigest(subject), r.to)
	}
	return m.copyTag(ctx, r.from.WithTag(tag), r.to.WithTag(tag))
}

// copyTag copies an artifact under a tag, unless the target has it. A tag that was deleted since the list is omitted.
func (m *mirror) copyTag(ctx context.Context, from, to oci.Reference) error {
	there, err := m.Client.Resolve(ctx, from)
	if errors.Is(err, remote.ErrTagNotFound) {
		return nil
	}
	if err != nil {
		return fromSource(err)
	}
	current, err := m.Client.Resolve(ctx, to)
	if isThere, err := m.isIntact(ctx, to.WithDigest(there.Digest), err == nil &&
		current.Digest == there.Digest); err != nil || isThere {
		return err
	}
	a, err := m.artifact(ctx, from.WithDigest(there.Digest))
	if err != nil {
		return err
	}
	if err := m.push(ctx, to, a); err != nil {
		return err
	}
	m.copied(from, there.Digest)
	return nil
}

// CopyIndex copies a state of an index with its signatures under the tag of the index, after all of its packages. It
// does nothing for a mirror of some kinds. It fails if the mirror has a newer state, which another run has copied. It
// returns the reference of the index in the target, and reports whether the index is the target's own one instead: a
// server that publishes an index of its packages itself accepts no other one in its place.
func CopyIndex(
	ctx context.Context, o Options, index oci.Reference, state *catalog.Reader,
) (to oci.Reference, isOwn bool, err error) {
	if len(o.Kinds) > 0 {
		return oci.Reference{}, false, nil
	}
	m := &mirror{Options: o, packages: map[string]bool{}, artifacts: map[artifact]bool{}}
	if to, err = m.target(index); err != nil {
		return oci.Reference{}, false, err
	}
	to = to.WithTag(index.Tag)
	err = m.copyState(ctx, index.WithDigest(state.Manifest().Digest), to, state.Config())
	if remote.ResponseCode(err) == "DENIED" && m.hasOwnIndex(ctx, to, state.Config()) {
		return to, true, nil
	}
	if err != nil {
		return oci.Reference{}, false, ErrMirror.New(err, "cannot copy the index %s", index)
	}
	return to, false, nil
}

// hasOwnIndex reports whether the target has an index under a reference that is not a state of the source.
func (m *mirror) hasOwnIndex(ctx context.Context, to oci.Reference, source catalog.Config) bool {
	current, err := m.Client.Resolve(ctx, to)
	if err != nil {
		return false
	}
	there, err := indexer.ReadConfig(ctx, m.Client, to.WithDigest(current.Digest))
	return err == nil && there.Name != source.Name
}

// copyState copies a state of an index after its signatures, so that no client finds the state without them.
func (m *mirror) copyState(ctx context.Context, from, to oci.Reference, config catalog.Config) error {
	signatures := indexer.SignatureTag(from.Digest)
	if err := m.copyTag(ctx, from.WithTag(signatures), to.WithTag(signatures)); err != nil {
		return err
	}
	current, err := m.Client.Resolve(ctx, to)
	switch {
	case err == nil && current.Digest == from.Digest:
		if isThere, err := m.isIntact(ctx, to.WithDigest(from.Digest), true); err != nil || isThere {
			return err
		}
	case err == nil:
		if there, err := indexer.ReadConfig(ctx, m.Client, to.WithDigest(current.Digest)); err == nil &&
			there.Name == config.Name && there.Sequence > config.Sequence {
			return indexer.ErrIndexChanged.New(
				nil, "the mirror has the state %d, which is newer than the state %d", there.Sequence, config.Sequence,
			)
		}
	case !indexer.IsAbsent(err):
		return err
	}
	a, err := m.Client.Artifact(ctx, from)
	if err != nil {
		return err
	}
	return m.push(ctx, to, a)
}
