package indexer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/indexlayer"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

var zeroTime time.Time

// factsVersion is the version of the facts in the package cache. It is incremented when they are computed differently.
const factsVersion = 1

func factsKey(d oci.Digest, texts bool) store.DerivedKey {
	key := store.DerivedKey{Digest: d, Name: "catalog-facts", Version: factsVersion}
	if texts {
		key.Name = "catalog-texts"
	}
	return key
}

// annotationCreated is the annotation of a manifest with the time of the image (OCI image specification, "Pre-Defined
// Annotation Keys").
const annotationCreated = "org.opencontainers.image.created"

// version returns the facts of the version of a reference with a tag, and whether reading it again has the same result
// while its digest is the same.
func (b *Builder) version(ctx context.Context, ref oci.Reference) (facts catalog.Facts, final bool) {
	m, err := b.opts.Remote.FetchManifest(ctx, ref, b.opts.Store, remote.FetchOptions{})
	if err != nil {
		b.note(ref.Name(), err)
		return failed(ref.Name(), ref.Tag, err), isFinal(err)
	}
	if f, ok := b.keptFacts(ctx, ref, m.Root, false); ok {
		return f, true
	}
	refused, final := b.refusal(ctx, ref, m.Root), true
	if refused == nil {
		f, err := b.readFacts(ctx, ref, m, false)
		if err == nil {
			return f, true
		}
		b.note(ref.Name(), err)
		e := errcode.From(err)
		refused, final = &catalog.IndexError{Code: e.Code.Name, Message: e.Error()}, isFinal(err)
		if isRefusal(err) {
			b.keepRefusal(ctx, ref, m.Root, refused)
		}
	}
	return catalog.Failed(ref.Name(), ref.Tag, m.Root, createdAt(m), *refused), final
}

// isRefusal reports whether an error is one of the content itself.
func isRefusal(err error) bool {
	return errcode.IsOfContent(err) && !errors.Is(err, remote.ErrRefused)
}

// refusalKey returns the key of the reason for which the program refuses the version of a reference, which the reason
// can name. Another program can accept it.
func (b *Builder) refusalKey(ref oci.Reference, d oci.Digest) store.DerivedKey {
	sum := sha256.Sum256([]byte(b.opts.Program + "\n" + ref.Name() + "\n" + ref.Tag))
	return store.DerivedKey{Digest: d, Name: "catalog-refusal-" + hex.EncodeToString(sum[:8]), Version: factsVersion}
}

// refusal returns the reason for which the version of a reference is refused, if the package cache has it; otherwise
// nil.
func (b *Builder) refusal(ctx context.Context, ref oci.Reference, d oci.Digest) *catalog.IndexError {
	if b.opts.Program == "" {
		return nil
	}
	raw, err := b.opts.Store.GetDerived(ctx, b.refusalKey(ref, d))
	var kept catalog.IndexError
	if err != nil || json.Unmarshal(raw, &kept) != nil || kept.Code == "" {
		return nil
	}
	return &kept
}

// keepRefusal writes the reason for which the version of a reference is refused to the package cache: reading it again
// can be slow. Programs without a version of their own are not told apart, so they keep none.
func (b *Builder) keepRefusal(ctx context.Context, ref oci.Reference, d oci.Digest, reason *catalog.IndexError) {
	if b.opts.Program == "" {
		return
	}
	if raw, err := json.Marshal(reason); err == nil {
		_ = b.opts.Store.PutDerived(ctx, b.refusalKey(ref, d), raw) // The next build is slower without it.
	}
}

// facts returns the facts of a manifest, from the package cache if it has them. With texts, the Head has a Text.
func (b *Builder) facts(ctx context.Context, ref oci.Reference, m oci.Manifest, texts bool) (catalog.Facts, error) {
	if f, ok := b.keptFacts(ctx, ref, m.Root, texts); ok {
		return f, nil
	}
	return b.readFacts(ctx, ref, m, texts)
}

// keptFacts returns the facts of a manifest for a reference, if the package cache has them.
func (b *Builder) keptFacts(
	ctx context.Context, ref oci.Reference, d oci.Digest, texts bool,
) (f catalog.Facts, ok bool) {
	raw, err := b.opts.Store.GetDerived(ctx, factsKey(d, texts))
	if err != nil || json.Unmarshal(raw, &f) != nil || f.Head == nil {
		return catalog.Facts{}, false
	}
	rename(&f, ref)
	return f, true
}

// readFacts reads the facts of a manifest, and keeps them in the package cache.
func (b *Builder) readFacts(ctx context.Context, ref oci.Reference, m oci.Manifest, texts bool) (catalog.Facts, error) {
	f, err := b.compute(ctx, ref, m, texts)
	if err != nil {
		return catalog.Facts{}, err
	}
	if raw, err := json.Marshal(f); err == nil {
		// A cache that cannot be written makes the next build slower, not wrong.
		_ = b.opts.Store.PutDerived(ctx, factsKey(m.Root, texts), raw)
	}
	return f, nil
}

// rename sets the repository and the tag of facts that were read for another reference with the same content.
func rename(f *catalog.Facts, ref oci.Reference) {
	name := ref.Name()
	f.Repository, f.Version.Tag = name, ref.Tag
	f.Version.Created = f.Version.Created.UTC()
	f.Head.Package.Repository = name
	for i := range f.Head.Kinds {
		f.Head.Kinds[i].Repository = name
	}
	if f.Head.Text != nil {
		f.Head.Text.Repository = name
	}
}

func (b *Builder) compute(ctx context.Context, ref oci.Reference, m oci.Manifest, texts bool) (catalog.Facts, error) {
	pkg, layer, err := b.read(ctx, ref, m, texts)
	if err != nil {
		return catalog.Facts{}, err
	}
	f, err := catalog.FactsOf(ref.Name(), ref.Tag, m.Root, createdAt(m), pkg)
	if err != nil {
		return catalog.Facts{}, err
	}
	f.Version.IndexLayer = layer
	if texts {
		f.Head.Text, err = catalog.TextOf(ref.Name(), pkg)
	}
	return f, err
}

// read returns the package of a manifest: from its index layer, which is then returned too, or else from its base
// layer.
func (b *Builder) read(
	ctx context.Context, ref oci.Reference, m oci.Manifest, whole bool,
) (*xpkg.Package, oci.Digest, error) {
	layer := indexlayer.Find(m)
	if layer != nil && !whole {
		pkg, err := b.readIndexLayer(ctx, ref, m, *layer)
		if err == nil {
			return pkg, layer.Digest, nil
		}
		if ctx.Err() != nil {
			return nil, oci.Digest{}, err
		}
	}
	origin := fetch.Plain(ref)
	origin.Lenient = true // Index layers contain packages that only the lenient policy accepts, too.
	pkg, err := b.opts.Source.Read(ctx, origin, m.Root, true)
	if layer == nil {
		return pkg, oci.Digest{}, err
	}
	return pkg, layer.Digest, err
}

// errNoDefinitions is the error of an index layer that was built before index layers contained the kinds.
var errNoDefinitions = indexlayer.ErrMismatch.New(nil, "the index layer does not contain the kinds of the package")

func (b *Builder) readIndexLayer(
	ctx context.Context, ref oci.Reference, m oci.Manifest, layer oci.Descriptor,
) (*xpkg.Package, error) {
	if err := b.opts.Remote.FetchLayer(ctx, ref.WithDigest(m.Root), m, layer, b.opts.Store); err != nil {
		return nil, err
	}
	a, err := b.opts.Store.Artifact(ctx, m.Root, oci.Limits{})
	if err != nil {
		return nil, err
	}
	x, err := indexlayer.Read(ctx, a, layer)
	if err != nil {
		return nil, err
	}
	if !x.HasDefinitions() {
		return nil, errNoDefinitions
	}
	// Facts do not need the objects themselves.
	return x.Package(noObjects{}, b.opts.FormatLimits)
}

// noObjects is the blob of an index whose objects are not fetched.
type noObjects struct{}

func (noObjects) ReadAt([]byte, int64) (int, error) { return 0, errNoDefinitions }

// createdAt returns the time that the manifest states; zero if there is none.
func createdAt(m oci.Manifest) time.Time {
	t, err := time.Parse(time.RFC3339, m.Annotations[annotationCreated])
	if err != nil {
		return zeroTime
	}
	return t
}

// entry returns the entry of a repository with facts, with the text of the newest version if the builder is to add it;
// nil without facts.
func (b *Builder) entry(ctx context.Context, ref oci.Reference, facts []catalog.Facts) (*catalog.Entry, error) {
	e, err := catalog.NewEntry(facts)
	if err != nil || e == nil || e.Latest() == "" || !b.opts.Texts {
		return e, errors.Join(err, ctx.Err())
	}
	i := slices.IndexFunc(facts, func(f catalog.Facts) bool { return f.Version.Tag == e.Latest() })
	if err := b.requests.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer b.requests.Release(1)
	digested := ref.WithTag(facts[i].Version.Tag).WithDigest(facts[i].Version.Digest)
	m, err := b.opts.Remote.FetchManifest(ctx, digested, b.opts.Store, remote.FetchOptions{})
	if err != nil {
		return e, ctx.Err()
	}
	// Without its text a package can still be found by its names.
	if with, err := b.facts(ctx, digested, m, true); err == nil {
		e.SetText(with.Head.Text)
	}
	return e, ctx.Err()
}
