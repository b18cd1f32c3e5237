package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// LoadOptions configures the copy of a bundle to a registry.
type LoadOptions struct {
	Client *remote.Client
	// Prefix is the registry, or a prefix of repositories in it.
	Prefix string
	// Done, if set, is called after each artifact, one call at a time.
	Done func(to oci.Reference, done, total int)
}

// Relocate returns the name of an artifact below a prefix. It contains the registry, so that artifacts of different
// registries have different names.
func Relocate(ref oci.Reference, prefix string) (oci.Reference, error) {
	name := UnderRegistry(ref.Registry, prefix) + strings.TrimPrefix(ref.String(), ref.Registry)
	return oci.ParseReference(name, oci.ParseOptions{AllowUntagged: true})
}

// UnderRegistry returns the prefix of the artifacts of a registry. Repository names cannot contain a port.
func UnderRegistry(registry, prefix string) string {
	label := registry
	if strings.ContainsAny(label, ":[]") {
		label = strings.Trim(strings.NewReplacer(":", "-", "[", "", "]", "").Replace(label), "-")
	}
	return prefix + "/" + label
}

// Load copies the artifacts of a bundle to a registry, each after its content, and what has a version after everything
// that belongs to it. It sends nothing that the registry has. It fails before the first upload with ErrDamaged if the
// bundle does not contain what it describes, and with ErrBaseMissing if the registry lacks what the bundle omits; and
// with ErrDamaged before a tag refers to content that is not intact. An artifact that cannot replace another content of
// its tag does not stop the others.
func (b *Bundle) Load(ctx context.Context, o LoadOptions) error {
	if err := b.check(ctx); err != nil {
		return err
	}
	l := &loading{bundle: b, LoadOptions: o}
	if err := l.checkNames(); err != nil {
		return err
	}
	if err := b.requireOmitted(ctx, o); err != nil {
		return err
	}
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, entries := range b.byRepository() {
		group.Go(func() error {
			for _, e := range entries {
				if err := l.entry(running, e); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return errors.Join(group.Wait(), errors.Join(l.immutable...))
}

// byRepository returns the artifacts of each repository, in their order, but what has a version comes after everything
// that belongs to it: its tag never refers to an image whose signatures are not there yet.
func (b *Bundle) byRepository() [][]Entry {
	var out [][]Entry
	at := map[string]int{}
	for _, e := range b.entries {
		i, ok := at[e.Ref.Name()]
		if !ok {
			i = len(out)
			at[e.Ref.Name()] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], e)
	}
	for _, entries := range out {
		slices.SortStableFunc(entries, func(a, b Entry) int { return rank(a) - rank(b) })
	}
	return out
}

// rank orders what belongs to others before artifacts with versions.
func rank(e Entry) int {
	if e.Ref.Tag == "" || isAttachedTag(e.Ref.Tag) {
		return 0
	}
	return 1
}

// isAttachedTag reports whether an artifact with a tag belongs to another one by it.
func isAttachedTag(tag string) bool {
	_, suffix, ok := oci.ParseArtifactTag(tag)
	return ok && suffix != ""
}

// requireOmitted checks that the registry has the blobs that the bundle omits: in the repository that needs them, or in
// the one of the other bundle, from which they are mounted.
func (b *Bundle) requireOmitted(ctx context.Context, o LoadOptions) error {
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	var mu sync.Mutex
	var missing []string
	for _, omitted := range b.Omitted {
		group.Go(func() error {
			at, err := relocateName(omitted.Repository, o.Prefix)
			if err != nil {
				return err
			}
			has, err := o.Client.HasBlob(running, at, omitted.Digest)
			if err == nil && !has {
				mu.Lock()
				defer mu.Unlock()
				missing = append(missing, fmt.Sprintf("%s of %s", omitted.Digest.Short(), omitted.Repository))
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if len(missing) == 0 {
		return nil
	}
	const most = 5
	return ErrBaseMissing.New(
		nil, "%s lacks %s of the bundle %s (%s): %s", o.Prefix, wording.Count(len(missing), "blob"), b.Since.Name,
		b.Since.Digest.Short(), wording.Few(missing, most, ", "),
	).WithDo("Run `xpkg bundle load %s %s` first.", wording.ShellWord(b.Since.Name), wording.ShellWord(o.Prefix))
}

func relocateName(repository, prefix string) (oci.Reference, error) {
	ref, err := oci.ParseReference(repository, oci.ParseOptions{AllowUntagged: true})
	if err != nil {
		return oci.Reference{}, err
	}
	return Relocate(ref, prefix)
}

// loading is the state of a Load.
type loading struct {
	bundle *Bundle
	LoadOptions
	mu        sync.Mutex
	done      int
	immutable []error
}

// checkNames checks that all artifacts have different names below the prefix.
func (l *loading) checkNames() error {
	names := map[string]oci.Reference{}
	for _, e := range l.bundle.entries {
		to, err := Relocate(e.Ref, l.Prefix)
		if err != nil {
			return err
		}
		if other, taken := names[entryName(to)]; taken {
			return oci.ErrInvalidReference.New(nil, "%s and %s would both become %s", other, e.Ref, entryName(to)).
				WithDo("Write a bundle for each of them, and load it with a prefix of its own.")
		}
		names[entryName(to)] = e.Ref
	}
	return nil
}

// entry copies one artifact.
func (l *loading) entry(ctx context.Context, e Entry) error {
	to, err := Relocate(e.Ref, l.Prefix)
	if err != nil {
		return err
	}
	a := artifact{l.bundle, e.root, func(ctx context.Context, o omitted) (io.ReadCloser, error) {
		at, err := relocateName(o.Repository, l.Prefix)
		if err != nil {
			return nil, err
		}
		return l.Client.OpenBlob(ctx, at, o.descriptor())
	}}
	err = l.push(ctx, to, a)
	if errors.Is(err, oci.ErrDigestMismatch) || errors.Is(err, oci.ErrSizeMismatch) {
		if damaged := l.bundle.verify(ctx, e); damaged != nil {
			err = damaged
		}
	}
	if len(l.bundle.Platforms) > 0 && e.root.MediaType.IsIndex() && errors.Is(err, remote.ErrRefused) {
		err = ErrPartialRefused.New(err, "%s lacks the images of other platforms", to)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(err, remote.ErrImmutable) {
		l.immutable = append(l.immutable, err)
		return nil
	}
	l.done++
	if err == nil && l.Done != nil {
		l.Done(to, l.done, len(l.bundle.entries))
	}
	return err
}

// push pushes an artifact under its tag, or without one as a referrer of its subject if it has one.
func (l *loading) push(ctx context.Context, to oci.Reference, a artifact) error {
	if isAttachedTag(to.Tag) {
		return l.Client.PushAttached(ctx, to, a)
	}
	_, doc, err := oci.ReadDocument(ctx, a, a.root, l.Client.Limits())
	if err == nil && to.Tag == "" && doc.Subject != nil {
		_, err = l.Client.Attach(ctx, to, a)
		return err
	}
	_, err = l.Client.Push(ctx, to, a)
	return err
}

// verify reads the content of an artifact, and returns an ErrDamaged for the first blob that is not intact.
func (b *Bundle) verify(ctx context.Context, e Entry) error {
	a := artifact{bundle: b, root: e.root}
	return oci.Walk(ctx, a, oci.Limits{}, func(ctx context.Context, d oci.Descriptor, raw []byte) error {
		if _, isHere := b.sections[d.Digest]; raw != nil || !isHere {
			return nil
		}
		r, err := a.Open(ctx, d)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, oci.VerifyReader(fileutil.Reader(ctx, r), d)); err != nil {
			return b.damaged(nil, "the blob %s of %s is not intact", d.Digest, entryName(e.Ref))
		}
		return nil
	})
}
