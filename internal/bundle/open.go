package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// Bundle is a bundle in a file, whose form is verified. Close it after use.
type Bundle struct {
	name    string
	file    *os.File
	digest  oci.Digest
	entries []Entry
	contents
	// sections are the blobs in the file.
	sections map[oci.Digest]section
	// omitted are the blobs of other bundles.
	omitted map[oci.Digest]omitted
	layers  []oci.Descriptor
}

// Entry is an artifact in a bundle.
type Entry struct {
	// Ref is the name of the artifact, with its digest.
	Ref  oci.Reference
	root oci.Descriptor
}

// Open opens a bundle. It verifies the form of the whole file, and the digests of the parts that describe it. The blobs
// are verified when they are read. It fails with ErrDamaged for a bundle that is incomplete or was changed, and with
// ErrNotABundle for another file.
func Open(name string) (*Bundle, error) {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() { // A named pipe would be waited for.
		err = errors.New("it is no regular file")
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(name)
	}
	if err != nil {
		return nil, ErrNotABundle.New(fileutil.WithoutPath(err), "cannot open %s", name).
			WithDo("Name a file that `xpkg bundle save` has written.")
	}
	b := &Bundle{name: name, file: f, sections: map[oci.Digest]section{}, omitted: map[oci.Digest]omitted{}}
	if err := b.read(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return b, nil
}

// Close closes the file.
func (b *Bundle) Close() error { return b.file.Close() }

// Entries returns the artifacts of the bundle, each before those that belong to it.
func (b *Bundle) Entries() []Entry { return b.entries }

// damaged returns an ErrDamaged.
func (b *Bundle) damaged(err error, format string, args ...any) error {
	return ErrDamaged.New(err, "%s is damaged: %s", b.name, fmt.Sprintf(format, args...))
}

func (b *Bundle) notABundle(err error) error {
	return ErrNotABundle.New(err, "%s is not a bundle", b.name)
}

// read reads the parts that describe the bundle, and checks all others.
func (b *Bundle) read() error {
	info, err := b.file.Stat()
	if err != nil {
		return err
	}
	first := newSection(layoutFile, []byte(layout))
	at := place([]section{first})
	if data, size, err := b.sized(layoutFile, 0); err != nil || string(data) != layout || size != first.Size {
		return b.notABundle(err)
	}
	index, _, err := b.sized(indexFile, at)
	if err != nil {
		return b.notABundle(err)
	}
	doc, err := oci.ParseDocument(index, "", limits())
	if err != nil || !doc.IsIndex() || len(doc.Manifests) == 0 || doc.Manifests[0].ArtifactType != artifactType {
		return b.notABundle(err)
	}
	front := []section{first, {name: indexFile, blob: blob{oci.DigestOf(index), int64(len(index))}}}
	self := doc.Manifests[0]
	if front, err = b.next(front, blobOf(self)); err != nil {
		return err
	}
	raw, err := b.small(front[len(front)-1])
	if err != nil {
		return err
	}
	manifest, err := oci.ParseDocument(raw, self.MediaType, limits())
	if err != nil || manifest.ArtifactType != artifactType || manifest.Config == nil ||
		manifest.Config.MediaType != mediaTypeContents {
		return b.notABundle(err)
	}
	b.digest, b.layers = self.Digest, manifest.Layers
	if front, err = b.next(front, blobOf(*manifest.Config)); err != nil {
		return err
	}
	raw, err = b.small(front[len(front)-1])
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &b.contents); err != nil {
		return b.notABundle(err)
	}
	if err := b.checkForm(front, doc.Manifests[1:], info.Size()); err != nil {
		return err
	}
	return b.readEntries(doc.Manifests[1:])
}

// sized returns the content of a small file in the bundle by its header.
func (b *Bundle) sized(name string, at int64) ([]byte, int64, error) {
	block := make([]byte, blockSize)
	if _, err := b.file.ReadAt(block, at); err != nil {
		return nil, 0, errors.New("it is too short")
	}
	h, err := tar.NewReader(bytes.NewReader(append(block, make([]byte, trailing)...))).Next()
	if err != nil || h.Name != name || h.Size > mostContents {
		return nil, 0, fmt.Errorf("it has no %s", name)
	}
	data := make([]byte, h.Size)
	_, err = b.file.ReadAt(data, at+blockSize)
	return data, h.Size, err
}

// next adds the section of a small blob, and sets its offset.
func (b *Bundle) next(front []section, next blob) ([]section, error) {
	if next.Size > mostContents {
		return nil, oci.ErrManifestTooLarge.New(nil, "%s describes itself with more than %d bytes", b.name, mostContents)
	}
	front = append(front, section{name: blobName(next.Digest), blob: next})
	place(front)
	return front, nil
}

// small returns the verified content of a small section.
func (b *Bundle) small(s section) ([]byte, error) {
	data := make([]byte, s.Size)
	if _, err := b.file.ReadAt(data, s.offset); err != nil {
		return nil, b.damaged(err, "it ends in %s", s.name)
	}
	if got := oci.DigestOf(data); got != s.Digest {
		return nil, b.damaged(nil, "%s has the digest %s", s.name, got)
	}
	return data, nil
}

// checkForm checks that the file has exactly the sections that the bundle describes.
func (b *Bundle) checkForm(front []section, entries []oci.Descriptor, size int64) error {
	all := front
	for _, next := range b.Blobs {
		if next.Digest.IsZero() || next.Size <= 0 || next.Size > size {
			return b.damaged(nil, "%s cannot have %d bytes", next.Digest, next.Size)
		}
		if _, twice := b.sections[next.Digest]; twice {
			return b.damaged(nil, "it contains %s twice", next.Digest)
		}
		all = append(all, section{name: blobName(next.Digest), blob: next})
		b.sections[next.Digest] = section{}
	}
	want := place(all) + trailing
	if size != want {
		return b.damaged(nil, "it has %d bytes instead of %d", size, want)
	}
	for _, s := range all {
		if err := b.checkSection(s); err != nil {
			return err
		}
	}
	for _, s := range all[len(front):] {
		b.sections[s.Digest] = s
	}
	end := make([]byte, trailing)
	if _, err := b.file.ReadAt(end, size-trailing); err != nil || !bytes.Equal(end, make([]byte, trailing)) {
		return b.damaged(err, "its end is not that of a tar")
	}
	for _, o := range b.Omitted {
		_, isHere := b.sections[o.Digest]
		if _, twice := b.omitted[o.Digest]; isHere || twice || o.Digest.IsZero() || o.Size <= 0 || b.Since == nil {
			return b.damaged(nil, "it both contains and omits %s", o.Digest)
		}
		if _, err := oci.ParseReference(o.Repository, oci.ParseOptions{AllowUntagged: true}); err != nil {
			return b.damaged(err, "a repository in it has no name")
		}
		b.omitted[o.Digest] = o
	}
	// What describes the bundle has one form too.
	same, err := head(b.contents, b.layers, entries)
	if err != nil {
		return err
	}
	for i, s := range same {
		if s.Digest != front[i].Digest {
			return b.damaged(nil, "%s has another form than xpkg writes", front[i].name)
		}
	}
	return nil
}

// checkSection checks everything of a section but its content.
func (b *Bundle) checkSection(s section) error {
	want, err := header(s.name, s.Size)
	if err != nil {
		return b.damaged(err, "%s has no header", s.name)
	}
	got := make([]byte, blockSize)
	if _, err := b.file.ReadAt(got, s.offset-blockSize); err != nil || !bytes.Equal(got, want) {
		return b.damaged(err, "the header of %s is wrong", s.name)
	}
	rest := s.padding()
	if _, err := b.file.ReadAt(rest, s.offset+s.Size); err != nil || !bytes.Equal(rest, s.padding()) {
		return b.damaged(err, "%s is followed by other content", s.name)
	}
	return nil
}

// readEntries reads the names of the artifacts.
func (b *Bundle) readEntries(all []oci.Descriptor) error {
	named := map[string]bool{}
	for _, d := range all {
		name := d.Annotations[annotationName]
		ref, err := oci.ParseReference(name, oci.ParseOptions{})
		if err == nil {
			ref = ref.WithDigest(d.Digest)
			if entryName(ref) != name || named[name] {
				err = errors.New("it is not canonical, or exists twice")
			}
		}
		if err != nil {
			return b.damaged(err, "the name of the entry %s is not valid", d.Digest.Short())
		}
		if _, isList := remote.ParseFallbackTag(ref.Tag); isList {
			return b.damaged(nil, "%s is the tag of a list of referrers, which a bundle does not have", name)
		}
		named[name] = true
		d.Annotations = nil // It is not part of the content.
		b.entries = append(b.entries, Entry{ref, d})
	}
	return nil
}

// Lock returns the lock file of the bundle, which is empty if it has none.
func (b *Bundle) Lock() ([]byte, error) { return b.layer(mediaTypeLock) }

// Configs returns the ImageConfigs in the bundle, in YAML.
func (b *Bundle) Configs() ([]byte, error) { return b.layer(mediaTypeConfigs) }

func (b *Bundle) layer(mediaType oci.MediaType) ([]byte, error) {
	for _, l := range b.layers {
		if l.MediaType == mediaType && l.Size <= mostContents {
			if s, ok := b.sections[l.Digest]; ok {
				return b.small(s)
			}
			return nil, b.damaged(nil, "it does not contain %s", l.Digest)
		}
	}
	return nil, nil
}

// check verifies all manifests, and that the bundle contains or omits exactly the content of its artifacts.
func (b *Bundle) check(ctx context.Context) error {
	used := map[oci.Digest]bool{}
	for _, l := range b.layers {
		if b.sections[l.Digest].Size != l.Size {
			return b.damaged(nil, "it does not contain %s", l.Digest)
		}
		used[l.Digest] = true
	}
	err := b.walk(ctx, func(_ Entry, d oci.Descriptor, _ bool) error {
		used[d.Digest] = true
		return nil
	})
	if err != nil {
		return err
	}
	if len(used) != len(b.sections)+len(b.omitted) {
		return b.damaged(nil, "it has content that belongs to no artifact")
	}
	return b.checkLock()
}

// walk visits all content of all artifacts.
func (b *Bundle) walk(ctx context.Context, visit func(e Entry, d oci.Descriptor, isManifest bool) error) error {
	for _, e := range b.entries {
		err := oci.Walk(ctx, artifact{bundle: b, root: e.root}, oci.Limits{}, func(
			_ context.Context, d oci.Descriptor, raw []byte,
		) error {
			size, ok := b.sections[d.Digest].Size, true
			if size == 0 {
				var o omitted
				o, ok = b.omitted[d.Digest]
				size = o.Size
			}
			if !ok || size != d.Size {
				return b.damaged(nil, "it does not contain %s with %d bytes, which is part of %s", d.Digest, d.Size, e.Ref)
			}
			return visit(e, d, raw != nil)
		})
		if errors.Is(err, oci.ErrDigestMismatch) || errors.Is(err, oci.ErrSizeMismatch) ||
			errors.Is(err, oci.ErrBlobNotFound) {
			return b.damaged(err, "the manifests of %s are not intact", e.Ref)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkLock checks that the bundle has the packages of its lock file.
func (b *Bundle) checkLock() error {
	raw, err := b.Lock()
	if err != nil || len(raw) == 0 {
		return err
	}
	f, err := lockfile.Parse(raw)
	if err != nil {
		return b.damaged(err, "its lock file is not valid")
	}
	for _, p := range f.Packages {
		if want := p.Reference(); !slices.ContainsFunc(b.entries, func(e Entry) bool { return e.Ref == want }) {
			return b.damaged(nil, "it lacks %s of its lock file", want)
		}
	}
	return nil
}

// locations returns the blobs that a registry has once the bundle is loaded, each with the name of a repository.
func (b *Bundle) locations(ctx context.Context) (map[oci.Digest]string, error) {
	out := map[oci.Digest]string{}
	for _, o := range b.Omitted {
		out[o.Digest] = o.Repository
	}
	err := b.walk(ctx, func(e Entry, d oci.Descriptor, isManifest bool) error {
		if _, known := out[d.Digest]; !known && !isManifest {
			out[d.Digest] = e.Ref.Name()
		}
		return nil
	})
	return out, err
}

// artifact is an artifact of a bundle. What the bundle omits is read elsewhere.
type artifact struct {
	bundle *Bundle
	root   oci.Descriptor
	// elsewhere opens a blob that the bundle omits; nil means that it is not available.
	elsewhere func(ctx context.Context, o omitted) (io.ReadCloser, error)
}

// Root implements [oci.Artifact].
func (a artifact) Root() oci.Descriptor { return a.root }

// Open implements [oci.Artifact].
func (a artifact) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	if s, ok := a.bundle.sections[d.Digest]; ok {
		return io.NopCloser(io.NewSectionReader(a.bundle.file, s.offset, s.Size)), nil
	}
	if o, ok := a.bundle.omitted[d.Digest]; ok && a.elsewhere != nil {
		return a.elsewhere(ctx, o)
	}
	return nil, oci.ErrBlobNotFound.New(nil, "%s does not contain %s", a.bundle.name, d.Digest)
}

// Omits implements [oci.Partial].
func (a artifact) Omits(d oci.Descriptor) bool {
	_, isHere := a.bundle.sections[d.Digest]
	return !isHere && len(a.bundle.Platforms) > 0
}
