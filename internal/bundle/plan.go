package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// Item is an artifact to save, such as a package or an image. What belongs to it is saved too.
type Item struct {
	// Ref is the name of the artifact, with the digest.
	Ref oci.Reference
	// Content is the artifact, wherever it is read.
	Content oci.Artifact
	// Client reads what belongs to the artifact from the repository At.
	Client *remote.Client
	At     oci.Reference
	// IsPackage keeps the manifest from which the package is read, whatever its platform is.
	IsPackage bool
}

// manifestsMemory bounds the manifests of a bundle, which are in memory while it is written, in bytes.
const manifestsMemory = 512 << 20

// part is what an item adds to a bundle, in the order of the bundle.
type part struct {
	entries   []oci.Descriptor
	manifests []document
	blobs     []source
}

type document struct {
	blob
	raw []byte
}

// source is a blob of an artifact.
type source struct {
	oci.Descriptor
	from oci.Artifact
}

// partOf reads the manifests of an item and of what belongs to it.
func partOf(ctx context.Context, item Item, o SaveOptions) (*part, error) {
	content := selected{Artifact: item.Content, platforms: o.Platforms}
	if item.IsPackage && len(o.Platforms) > 0 {
		d, _, _, err := oci.FindImage(ctx, item.Content, oci.Platform{}, item.Client.Limits())
		if err != nil {
			return nil, err
		}
		content.always = d.Digest
	}
	p := &part{}
	if err := p.add(ctx, item.Ref, content, item.Client.Limits()); err != nil {
		return nil, err
	}
	all, err := item.Client.FindAttached(ctx, item.At.WithDigest(item.Ref.Digest), content)
	if err != nil {
		return nil, unknown(err, "cannot read what belongs to %s, such as signatures", item.Ref)
	}
	for _, a := range all {
		artifact, err := item.Client.OpenAttached(ctx, a)
		if errors.Is(err, oci.ErrManifestNotFound) {
			o.note(fmt.Sprintf("%s lists %s, which does not exist", item.At.Name(), a))
			continue
		}
		if err != nil {
			return nil, unknown(err, "cannot read %s of %s", a, item.Ref)
		}
		if artifact == nil {
			continue
		}
		ref := item.Ref.WithTag(a.Ref.Tag).WithDigest(a.Ref.Digest)
		if err := p.add(ctx, ref, artifact, item.Client.Limits()); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func unknown(err error, format string, args ...any) error {
	return signature.ErrUnknown.New(err, format, args...).
		WithDo("Correct the cause in the message, such as missing permissions in the registry, and run the command again.")
}

// add adds an artifact under a name.
func (p *part) add(ctx context.Context, ref oci.Reference, a oci.Artifact, limits oci.Limits) error {
	root := a.Root()
	if root.Digest != ref.Digest {
		return oci.ErrDigestMismatch.New(nil, "%s has the digest %s", ref, root.Digest)
	}
	p.entries = append(p.entries, oci.Descriptor{
		MediaType: root.MediaType, Digest: root.Digest, Size: root.Size,
		Annotations: map[string]string{annotationName: entryName(ref)},
	})
	return oci.Walk(ctx, a, limits, func(_ context.Context, d oci.Descriptor, raw []byte) error {
		if raw != nil {
			p.manifests = append(p.manifests, document{blobOf(d), raw})
			return nil
		}
		p.blobs = append(p.blobs, source{d, a})
		return nil
	})
}

// entryName returns the name of an entry. It omits the digest if there is a tag, because the descriptor has it.
func entryName(ref oci.Reference) string {
	if ref.Tag != "" {
		ref.Digest = oci.Digest{}
	}
	return ref.String()
}

// selected is an artifact without the images of other platforms.
type selected struct {
	oci.Artifact
	platforms []oci.Platform
	always    oci.Digest
}

// Omits implements [oci.Partial]. It keeps what is no image of a platform, such as attestations of build tools.
func (s selected) Omits(d oci.Descriptor) bool {
	if len(s.platforms) == 0 || d.Digest == s.always || d.Platform == nil || d.IsAttestation() || d.IsExtensions() {
		return false
	}
	return !slices.ContainsFunc(s.platforms, d.Platform.Satisfies)
}

// merged is the content of a bundle.
type merged struct {
	entries          []oci.Descriptor
	manifests, blobs []section
	sizes            map[oci.Digest]int64
	named            map[string]oci.Digest
	memory           int64
}

// merge joins the parts of items, and keeps the first of several equal ones.
func merge(parts []*part) (*merged, error) {
	m := &merged{sizes: map[oci.Digest]int64{}, named: map[string]oci.Digest{}}
	for _, p := range parts {
		for _, e := range p.entries {
			name := e.Annotations[annotationName]
			switch known, ok := m.named[name]; {
			case ok && known != e.Digest:
				return nil, oci.ErrInvalidReference.New(nil, "%s is both %s and %s", name, known, e.Digest).
					WithDo("Use the same digest for the tag everywhere, or run the command again if the tag was moved meanwhile.")
			case !ok:
				m.named[name] = e.Digest
				m.entries = append(m.entries, e)
			}
		}
		for _, d := range p.manifests {
			isNew, err := m.isNew(d.blob)
			if err != nil {
				return nil, err
			}
			if isNew {
				m.memory += d.Size
				m.manifests = append(m.manifests, newSection("", d.raw))
			}
		}
	}
	for _, p := range parts {
		for _, b := range p.blobs {
			isNew, err := m.isNew(blobOf(b.Descriptor))
			if err != nil {
				return nil, err
			}
			if isNew {
				m.blobs = append(m.blobs, section{
					name: blobName(b.Digest), blob: blobOf(b.Descriptor),
					open: func(ctx context.Context) (io.ReadCloser, error) { return b.from.Open(ctx, b.Descriptor) },
				})
			}
		}
	}
	if len(m.entries) >= mostEntries || m.memory > manifestsMemory {
		return nil, oci.ErrManifestTooLarge.New(
			nil, "the bundle would have %d entries and %d bytes of manifests, at most %d and %d are allowed", len(m.entries),
			m.memory, mostEntries, manifestsMemory,
		).WithDo("Write several bundles with fewer packages.")
	}
	return m, nil
}

// isNew reports whether a digest is new. It fails if the digest has another size than before.
func (m *merged) isNew(b blob) (bool, error) {
	size, known := m.sizes[b.Digest]
	if known && size != b.Size {
		return false, oci.ErrSizeMismatch.New(nil, "%s has %d bytes in one manifest and %d in another", b.Digest, size, b.Size)
	}
	m.sizes[b.Digest] = b.Size
	return !known, nil
}

// inOrder returns items by their names, without duplicates, of which a package comes first.
func inOrder(items []Item) []Item {
	items = slices.Clone(items)
	key := func(i Item) string { return fmt.Sprintf("%s %t", i.Ref, !i.IsPackage) }
	slices.SortFunc(items, func(a, b Item) int { return cmp.Compare(key(a), key(b)) })
	return slices.CompactFunc(items, func(a, b Item) bool { return a.Ref == b.Ref })
}
