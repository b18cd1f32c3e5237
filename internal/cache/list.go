package cache

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	ociarchive "github.com/xpkg-dev/xpkg/pkg/oci/archive"
)

// Entry is a package in the cache, another artifact, or a sideloaded file.
type Entry struct {
	// Digest of the root; zero for a file that cannot be read.
	Digest oci.Digest `json:"digest,omitzero"`
	// Names from [Cache.Add].
	Names []string `json:"names,omitempty"`
	// Files lists the sideloaded files with this content.
	Files []string `json:"files,omitempty"`
	// Kind and Package are from the metadata of the package, if it can be read.
	Kind    string `json:"kind,omitempty"`
	Package string `json:"package,omitempty"`
	// Size is the number of bytes in the store that only this package needs. Shared blobs
	// are not counted, nor are sideloaded files.
	Size int64 `json:"size"`
	// LastUsed is the time of the last write or read.
	LastUsed time.Time `json:"lastUsed,omitzero"`
	// InUse lists the owners that use the package.
	InUse []string `json:"inUse,omitempty"`
	// Users are the names of the owners for people: data directories and addresses of control planes, as far as they are
	// known.
	Users []string `json:"users,omitempty"`
	// Type is the artifact type of content that is not a package, such as the index of a registry.
	Type string `json:"type,omitempty"`
	// Partial reports whether only parts of the package were read, as an index and a solution of dependencies need. They
	// are not damaged.
	Partial bool `json:"partial,omitempty"`
	// Problem is the reason why the package cannot be read.
	Problem string `json:"problem,omitempty"`
	// Missing are the parts of the package that are not in the cache, such as a quarantined layer.
	Missing []string `json:"missing,omitempty"`
}

// List returns the packages in the cache, by kind and name, and then the sideloaded files
// that have not been imported. Listing does not count as a use.
func (c *Cache) List(ctx context.Context) ([]Entry, error) {
	s, err := c.scan(ctx)
	if err != nil {
		return nil, err
	}
	var all []Entry
	holdings := s.holdings()
	owners := byDigest(holdings)
	for _, h := range holdings {
		if h.isPackage || len(h.names) > 0 {
			e := s.describe(h, owners)
			c.read(ctx, &e, h)
			for _, f := range c.lacking(ctx, s, h) {
				e.Missing = append(e.Missing, f.What)
			}
			if e.Partial || e.Type != "" {
				e.Missing = nil
			}
			all = append(all, e)
		}
	}
	if all, err = c.withFiles(ctx, all); err != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	slices.SortStableFunc(all, func(a, b Entry) int {
		return cmp.Or(
			compareBool(a.Kind == "", b.Kind == ""), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Package, b.Package),
			slices.Compare(a.Names, b.Names),
		)
	})
	return all, ctx.Err()
}

// Size returns the size and the limit of the cache in bytes.
func (c *Cache) Size(ctx context.Context) (has, limit int64, err error) {
	over, err := c.over(ctx, 0)
	return over + c.limit, c.limit, err
}

// describe returns the entry of a package without its metadata.
func (s *snapshot) describe(h *holding, owners map[oci.Digest][]*holding) Entry {
	return Entry{
		Digest: h.root, Names: h.names, LastUsed: h.lastUsed, InUse: h.owners, Users: s.users[h.root], Size: s.own(h, owners),
	}
}

// read adds the metadata of the package to its entry, or what else the content is.
func (c *Cache) read(ctx context.Context, e *Entry, h *holding) {
	a, err := c.store.Peek().Artifact(ctx, e.Digest, c.limits)
	if err != nil {
		e.Problem = err.Error()
		return
	}
	what, err := c.summarize(ctx, a, e.Digest.Short())
	e.Kind, e.Package = what.Kind, what.Name
	switch {
	case err == nil:
		return
	case errors.Is(err, oci.ErrNotAPackage):
		e.Type = c.artifactType(ctx, e.Digest)
	case errors.Is(err, oci.ErrBlobNotFound):
		e.Partial = !h.wanted()
	}
	if e.Type == "" && !e.Partial {
		e.Problem = err.Error()
	}
}

// artifactType returns the artifact type of a document, or "" for an image.
func (c *Cache) artifactType(ctx context.Context, d oci.Digest) string {
	doc, err := c.store.Peek().Document(ctx, d, c.limits)
	if err != nil || doc == nil {
		return ""
	}
	return doc.ArtifactType
}

// own returns the size of the blobs that no other package needs.
func (s *snapshot) own(h *holding, owners map[oci.Digest][]*holding) int64 {
	var n int64
	for _, e := range s.entries {
		if of := owners[e.Digest]; len(of) == 1 && of[0] == h {
			n += e.Size
		}
	}
	return n
}

// entry returns the entry of a package.
func (c *Cache) entry(ctx context.Context, root oci.Digest) (Entry, error) {
	s, err := c.scan(ctx)
	if err != nil {
		return Entry{}, err
	}
	holdings := s.holdings()
	i := slices.IndexFunc(holdings, func(h *holding) bool { return h.root == root })
	if i < 0 {
		return Entry{},
			ErrNotInCache.New(nil, "%s was removed from the package cache %s while it was being added", root, c.dir)
	}
	e := s.describe(holdings[i], byDigest(holdings))
	c.read(ctx, &e, holdings[i])
	return e, nil
}

// withFiles adds the sideloaded files to the packages with their content.
func (c *Cache) withFiles(ctx context.Context, all []Entry) ([]Entry, error) {
	files, err := c.sideloadedFiles()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		e := c.describeFile(ctx, file)
		i := slices.IndexFunc(all, func(other Entry) bool { return !e.Digest.IsZero() && other.Digest == e.Digest })
		if i < 0 {
			all = append(all, e)
			continue
		}
		all[i].Files = append(all[i].Files, file)
	}
	return all, nil
}

// describeFile returns the entry of a sideloaded file without importing it.
func (c *Cache) describeFile(ctx context.Context, file string) Entry {
	e := Entry{Files: []string{file}}
	a, err := ociarchive.OpenIn(ctx, c.root, file, c.limits)
	if err != nil && strings.HasSuffix(file, ".gz") {
		return e // It is unpacked on demand.
	}
	if err != nil {
		e.Problem = err.Error()
		return e
	}
	defer a.Close()
	e.Digest = a.Root().Digest
	what, err := c.summarize(ctx, a, file)
	if err != nil {
		e.Problem = err.Error()
	}
	e.Kind, e.Package = what.Kind, what.Name
	return e
}
