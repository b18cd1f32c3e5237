package registry

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Packages reads the packages of one registry. It opens its store at the first use.
type Packages struct {
	host   string
	dir    string
	client *remote.Client
	remote remote.Options

	mu     sync.Mutex
	store  *store.Store
	source *fetch.Source
}

// NewPackages returns the packages of the registry at a host. Content is cached in a folder.
func NewPackages(host, dir string, o remote.Options) *Packages {
	return &Packages{host: host, dir: filepath.Join(dir, "content"), client: remote.New(o), remote: o}
}

// open returns the source of packages.
func (p *Packages) open() (*fetch.Source, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.source != nil {
		return p.source, nil
	}
	var err error
	if p.store, err = store.Open(p.dir, store.Options{}); err != nil {
		return nil, err
	}
	p.source = fetch.NewSource(fetch.Options{Remote: p.remote, Store: p.store})
	return p.source, nil
}

// Close releases the resources.
func (p *Packages) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.client.Close()
	if p.source == nil {
		return nil
	}
	p.source.Close()
	return p.store.Close()
}

// reference returns the reference of a repository of the registry.
func (p *Packages) reference(repository string) (oci.Reference, error) {
	return oci.ParseReference(p.host+"/"+repository+":latest", oci.ParseOptions{})
}

// Read returns the package with a digest.
func (p *Packages) Read(ctx context.Context, repository string, d oci.Digest) (*xpkg.Package, error) {
	source, err := p.open()
	if err != nil {
		return nil, err
	}
	ref, err := p.reference(repository)
	if err != nil {
		return nil, err
	}
	origin := fetch.Plain(ref)
	origin.Lenient = true
	return source.Read(ctx, origin, d, true)
}

// versionFacts are the facts of a version, and those of another content that the tag had.
type versionFacts map[string]catalog.Facts // by tag

// facts returns the facts of the versions of a repository. It reads only versions that are not known with the same digest. A
// version that cannot be indexed has facts with the reason.
func (p *Packages) facts(ctx context.Context, repository string, known versionFacts) (versionFacts, error) {
	ref, err := p.reference(repository)
	if err != nil {
		return nil, err
	}
	tags, err := p.client.Tags(ctx, ref)
	if errors.Is(err, remote.ErrRepositoryNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := versionFacts{}
	for _, tag := range tags {
		if isArtifactTag(tag) {
			continue
		}
		d, err := p.client.Resolve(ctx, ref.WithTag(tag))
		if errors.Is(err, remote.ErrTagNotFound) {
			continue // It was deleted after the list.
		}
		if err != nil {
			return nil, err
		}
		f, ok := known[tag]
		if !ok || f.Version.Digest != d.Digest || f.Version.Error != nil {
			if f, ok, err = p.read(ctx, repository, tag, d.Digest); err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
		}
		f.Version.Status = nil
		found[tag] = f
	}
	return found, p.addStatuses(ctx, ref, tags, found)
}

// isArtifactTag reports whether a tag belongs to an artifact beside a version: its status, its signature or its documentation.
func isArtifactTag(tag string) bool {
	return strings.HasPrefix(tag, "sha256-") || strings.HasPrefix(tag, "docs-")
}

// read returns the facts of a version, and false for content that is no package. An unreachable registry is an error; a defect of
// the package is part of the facts.
func (p *Packages) read(ctx context.Context, repository, tag string, d oci.Digest) (catalog.Facts, bool, error) {
	name := p.host + "/" + repository
	pkg, err := p.Read(ctx, repository, d)
	if err == nil {
		var f catalog.Facts
		if f, err = catalog.FactsOf(name, tag, d, time.Time{}, pkg); err == nil {
			return f, true, nil
		}
	}
	known := errcode.From(err)
	switch {
	case errors.Is(err, oci.ErrNotAPackage), errors.Is(err, oci.ErrManifestNotFound):
		return catalog.Facts{}, false, nil
	case ctx.Err() != nil, known.Code.Class.Name == errcode.Unavailable.Name:
		return catalog.Facts{}, false, err
	}
	return catalog.Failed(name, tag, d, time.Time{}, catalog.IndexError{Code: known.Code.Name, Message: err.Error()}), true, nil
}

// addStatuses sets the statuses of versions, and adds the versions that were removed. It reads only the statuses that the list of tags
// contains.
func (p *Packages) addStatuses(ctx context.Context, ref oci.Reference, tags []string, found versionFacts) error {
	for _, tag := range tags {
		digest, ok := catalog.ParseStatusTag(tag)
		if !ok {
			continue
		}
		s, err := packagestatus.Read(ctx, p.client, ref.WithDigest(digest))
		if err != nil && errcode.From(err).Code.Class.Name == errcode.Unavailable.Name {
			return err
		}
		if err != nil || s == nil {
			continue // A malformed status has no effect.
		}
		status := s.Normalize()
		if f, ok := found[s.Tag]; ok && f.Version.Digest == digest {
			f.Version.Status = status
			found[s.Tag] = f
		} else if !ok && status != nil && status.State == catalog.Removed {
			removed := catalog.Failed(ref.Name(), s.Tag, digest, time.Time{}, catalog.IndexError{Code: "Removed", Message: "the version was deleted"})
			removed.Version.Status = status
			found[s.Tag] = removed
		}
	}
	return nil
}

// removed returns the digest of a version that was deleted, and zero for any other. It reads the statuses of the repository and not the
// index, which may not include the latest change.
func (p *Packages) removed(ctx context.Context, repository, tag string) (oci.Digest, error) {
	ref, err := p.reference(repository)
	if err != nil {
		return oci.Digest{}, err
	}
	tags, err := p.client.Tags(ctx, ref)
	if err != nil {
		if errors.Is(err, remote.ErrRepositoryNotFound) {
			err = nil
		}
		return oci.Digest{}, err
	}
	for _, t := range tags {
		digest, ok := catalog.ParseStatusTag(t)
		if !ok {
			continue
		}
		s, err := packagestatus.Read(ctx, p.client, ref.WithDigest(digest))
		if err == nil && s != nil && s.Tag == tag && s.State == catalog.Removed {
			return digest, nil
		}
	}
	return oci.Digest{}, nil
}
