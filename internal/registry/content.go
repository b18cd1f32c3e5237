package registry

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/catalog/docs"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Packages reads the packages of one registry. It opens its store at the first use.
type Packages struct {
	host string
	dir  string
	// requests are the requests to the registry.
	requests *inProcess
	client   *remote.Client
	remote   remote.Options
	// digest returns the digest of a tag whose manifest cannot be read; nil means that such a tag has none.
	digest func(ctx context.Context, repository, tag string) (oci.Digest, error)
	// digests returns the digests of the tags of a repository whose manifests can be read; nil asks the registry for each
	// of them.
	digests func(repository string) (map[string]oci.Digest, error)
	// remembers makes updates of an index ask only for digests that are not known.
	remembers bool

	mu     sync.Mutex
	store  *store.Store
	source *fetch.Source
}

// NewPackages returns the packages of the registry at a host, which a handler of this process serves without access
// control. Content is cached in a folder.
func NewPackages(host, dir string, images http.Handler) *Packages {
	requests := &inProcess{handler: images}
	o := remote.Options{Transport: requests}
	return &Packages{host: host, dir: filepath.Join(dir, "content"), requests: requests, client: remote.New(o), remote: o}
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

// Close releases the resources. It waits for the handlers of canceled requests, so that the registry can be closed
// after it.
func (p *Packages) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.client.Close()
	p.requests.wait()
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
	ref.Tag = "" // Errors name the digest only.
	origin := fetch.Plain(ref)
	origin.Lenient = true
	return source.Read(ctx, origin, d, true)
}

// blob returns the content of a descriptor, whose size the caller has limited.
func (p *Packages) blob(ctx context.Context, repository string, d oci.Descriptor) ([]byte, error) {
	if _, err := p.open(); err != nil {
		return nil, err
	}
	ref, err := p.reference(repository)
	if err != nil {
		return nil, err
	}
	if err := p.client.FetchBlobs(ctx, ref, []oci.Descriptor{d}, p.store); err != nil {
		return nil, err
	}
	return p.store.Get(ctx, d.Digest, d.Size)
}

// Examples returns the examples in a layer of the package with a digest; none if the layer is not valid. The error is
// that of reading it.
func (p *Packages) Examples(ctx context.Context, repository string, d oci.Digest) ([]docs.Example, error) {
	if _, err := p.open(); err != nil {
		return nil, err
	}
	ref, err := p.reference(repository)
	if err != nil {
		return nil, err
	}
	a, err := p.client.Cached(ctx, ref.WithDigest(d), p.store)
	if err != nil {
		return nil, err
	}
	m, err := oci.FindManifest(ctx, a, oci.Platform{}, oci.Limits{})
	if err != nil {
		return nil, err
	}
	stream, err := oci.Examples(ctx, a, m, oci.Limits{})
	if err != nil {
		if class := errcode.From(err).Code.Class; class == errcode.Unavailable || class == errcode.Timeout ||
			ctx.Err() != nil {
			return nil, err
		}
		return nil, nil
	}
	examples, _ := docs.ParseExamples(stream)
	return examples, nil
}

// builder returns a builder of indexes of the packages. Its reads are cached in the folder of the packages.
func (p *Packages) builder(texts bool) (*indexer.Builder, error) {
	source, err := p.open()
	if err != nil {
		return nil, err
	}
	return indexer.NewBuilder(indexer.Options{
		Remote: p.client, Source: source, Store: p.store, Texts: texts, Moved: true, Digests: p.digests,
		Remember: p.remembers, Parallel: runtime.GOMAXPROCS(0) * readsPerProcessor,
	}), nil
}

// readsPerProcessor is the number of versions that are read at the same time for each processor.
const readsPerProcessor = 4

// published returns the digests of the versions whose tags are selected, by tag, including those that were deleted and
// left a status. It reads the tags and statuses of the repository and not the index, which may not include the latest
// change.
func (p *Packages) published(
	ctx context.Context, repository string, selects func(tag string) bool,
) (map[string]oci.Digest, error) {
	ref, err := p.reference(repository)
	if err != nil {
		return nil, err
	}
	tags, err := p.client.ExistingTags(ctx, ref)
	if err != nil {
		return nil, ofBackend(err)
	}
	var digests map[string]oci.Digest
	if p.digests != nil {
		if digests, err = p.digests(repository); err != nil {
			return nil, err
		}
	}
	found := map[string]oci.Digest{}
	for _, tag := range tags {
		if digest, isStatus := catalog.ParseStatusTag(tag); isStatus {
			s, err := p.status(ctx, ref, digest, digests[tag])
			switch {
			case err != nil && errcode.From(err).Code.Class != errcode.Invalid:
				return nil, err
			case err == nil && s != nil && selects(s.Tag) && found[s.Tag].IsZero():
				// A version that has a status but no tag was deleted, whatever the status: several servers can change it at the
				// same time.
				found[s.Tag] = digest
			}
			continue
		}
		if !selects(tag) {
			continue
		}
		d, err := p.client.Resolve(ctx, ref.WithTag(tag))
		if err != nil && !errors.Is(err, remote.ErrTagNotFound) {
			return nil, ofBackend(err)
		}
		if err != nil && p.digest != nil {
			if d.Digest, err = p.digest(ctx, repository, tag); err != nil {
				return nil, err
			}
		}
		if !d.Digest.IsZero() {
			found[tag] = d.Digest
		}
	}
	return found, nil
}

// status returns the status of a version, whose artifact has a digest; zero if it is not known. It returns nil if the
// version has none.
func (p *Packages) status(
	ctx context.Context, ref oci.Reference, version, artifact oci.Digest,
) (*catalog.VersionStatus, error) {
	if artifact.IsZero() {
		return packagestatus.Read(ctx, p.client, ref.WithDigest(version))
	}
	if _, err := p.open(); err != nil {
		return nil, err
	}
	return packagestatus.ReadCached(ctx, p.client, p.store, ref.WithDigest(artifact), version)
}
