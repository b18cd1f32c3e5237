package registry

import (
	"fmt"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// readIndex reads the versions of all packages of an index, by their digests, and sets the owners of API groups and the
// deleted versions in the options.
func (c *exportCmd) readIndex(env *terminal.Env, options *folder.Options) ([]folder.Version, error) {
	all, err := c.openIndex(env)
	if err != nil {
		return nil, err
	}
	options.Owners = all.Config.Owners
	var out []folder.Version
	for i := range all.Histories {
		h := &all.Histories[i]
		facts, err := all.FactsFrom(h.Repository)
		if err != nil {
			return nil, err
		}
		for _, f := range facts {
			if f.Version.Status != nil && f.Version.Status.State == catalog.Removed {
				options.Removed = append(options.Removed, f)
			}
		}
		versions := readable(h.Versions)
		if c.Versions > 0 && len(versions) > c.Versions {
			versions = versions[len(versions)-c.Versions:]
		}
		for _, indexed := range versions {
			v, err := c.readIndexed(env, h.Repository, indexed)
			if err == nil {
				out = append(out, v)
				continue
			}
			if class := errcode.From(err).Code.Class; class != errcode.Invalid && class != errcode.Limit {
				return nil, err
			}
			// An index contains the packages of many publishers: the content of one must not prevent the pages of the others.
			fmt.Fprintf(
				env.Stderr, "warning: %s:%s is left out: %s\n", terminal.Safe(h.Repository), terminal.Safe(indexed.Tag),
				terminal.Safe(err.Error()),
			)
		}
	}
	if len(out) == 0 {
		return nil, terminal.ErrUsage.New(nil, "the index %s has no version that can be read", terminal.Safe(c.Index))
	}
	return out, nil
}

// openIndex returns the content of the index.
func (c *exportCmd) openIndex(env *terminal.Env) (_ *catalog.Catalog, err error) {
	ref, err := flags.ParseReference(c.Index)
	if err != nil {
		return nil, err
	}
	keys, err := c.Keys(env.Context)
	if err != nil {
		return nil, err
	}
	p, err := c.Open(0)
	if err != nil {
		return nil, err
	}
	defer terminal.Close(&err, p)
	client, err := c.Remote(env.Context, oci.Limits{}, nil, ref.Registry)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return readIndex(env, &indexer.Client{Remote: client, Store: p.Store(), Keys: keys}, ref)
}

// readable returns the versions whose content the indexer has read, and that were not deleted since.
func readable(versions []catalog.Version) []catalog.Version {
	var out []catalog.Version
	for _, v := range versions {
		if v.Error == nil && !v.Digest.IsZero() && (v.Status == nil || v.Status.State != catalog.Removed) {
			out = append(out, v)
		}
	}
	return out
}

// readIndexed reads a version with the digest in the index. Its status and signatures are those of the index.
func (c *exportCmd) readIndexed(env *terminal.Env, repository string, indexed catalog.Version) (folder.Version, error) {
	v := folder.Version{Repository: repository, Tag: indexed.Tag}
	ref, err := oci.ParseReference(repository+"@"+indexed.Digest.String(), oci.ParseOptions{})
	if err != nil {
		return v, err
	}
	if err := c.readArtifact(env, location.Location{Kind: location.Registry, Ref: ref}, &v); err != nil {
		return v, err
	}
	v.Digest, v.Created, v.Status, v.Signatures = indexed.Digest, indexed.Created, indexed.Status, indexed.Signatures
	return v, nil
}
