package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// place is where a package is, or where it is to go. Which of the four it is, its
// text alone decides, and never what happens to be on the disk:
//
//   - standard input or output
//     oci:DIR    the folder of an OCI layout
//     PATH       a file: whatever starts with / ./ or ../, or has neither : nor @
//     REFERENCE  all else: a reference has a tag or a digest, so it has : or @
type place struct {
	kind placeKind
	// path is that of the file or folder.
	path string
	ref  oci.Reference
}

type placeKind int

const (
	inStream placeKind = iota
	inFile
	inLayout
	inRegistry
)

// layoutPrefix marks the folder of a layout, as skopeo and oras mark it.
const layoutPrefix = "oci:"

func parsePlace(s string) (place, error) {
	switch {
	case s == "-":
		return place{kind: inStream}, nil
	case strings.HasPrefix(s, layoutPrefix):
		dir := strings.TrimPrefix(s, layoutPrefix)
		if dir == "" {
			return place{}, ErrUsage.New(nil, "%s names no folder", s)
		}
		return place{kind: inLayout, path: dir}, nil
	case isPath(s):
		return place{kind: inFile, path: s}, nil
	}
	ref, err := parseReference(s)
	return place{kind: inRegistry, ref: ref}, err
}

func isPath(s string) bool {
	for _, prefix := range []string{"/", "./", "../", `.\`, `..\`, `\`} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return filepath.VolumeName(s) != "" || !strings.ContainsAny(s, ":@")
}

// String is the place as it was written, and a reference fully qualified.
func (p place) String() string {
	switch p.kind {
	case inStream:
		return "-"
	case inLayout:
		return layoutPrefix + p.path
	case inRegistry:
		return p.ref.String()
	}
	return p.path
}

// registries are the registries that places name.
func registries(places ...place) []string {
	var hosts []string
	for _, p := range places {
		if p.kind == inRegistry {
			hosts = append(hosts, p.ref.Registry)
		}
	}
	return hosts
}

// opened is the content of a place.
type opened struct {
	oci.Artifact
	// place has the digest in its reference.
	place
	close func() error
}

func (o *opened) Close() error { return o.close() }

// mover opens and fills places.
type mover struct {
	env     *Env
	remote  *remote.Client
	limits  oci.Limits
	archive int64
}

// open opens a place for reading. A tag is resolved here, once.
func (m mover) open(ctx context.Context, p place) (*opened, error) {
	o := &opened{place: p, close: func() error { return nil }}
	switch p.kind {
	case inRegistry:
		d, err := m.remote.Resolve(ctx, p.ref)
		if err != nil {
			return nil, err
		}
		o.ref = p.ref.WithDigest(d.Digest)
		o.Artifact, err = m.remote.Artifact(ctx, o.ref)
		return o, err
	case inStream:
		a, err := archive.Read(ctx, m.env.Stdin, "", m.archive, m.limits)
		if err != nil {
			return nil, err
		}
		o.Artifact, o.close = a, a.Close
		return o, nil
	}
	a, err := archive.Open(ctx, p.path, m.limits)
	if errors.Is(err, archive.ErrArchiveNotFound) && p.kind == inFile && errors.Is(err, os.ErrNotExist) {
		return nil, archive.ErrArchiveNotFound.New(nil, "there is no file %s", p.path).
			WithDo("Check the path. A reference needs a :tag or an @sha256 digest to be one.")
	}
	if err != nil {
		return nil, err
	}
	o.Artifact, o.close = a, a.Close
	return o, nil
}

// write brings an artifact to a place. Tag is what a layout calls it; it can be
// empty.
func (m mover) write(ctx context.Context, p place, a oci.Artifact, tag string) (oci.Digest, error) {
	a = bare{a}
	switch p.kind {
	case inRegistry:
		return oci.Copy(ctx, m.remote.To(p.ref), a)
	case inLayout:
		return oci.Copy(ctx, archive.ToLayout(p.path, tag, m.limits), a)
	case inStream:
		return m.env.writeArchive(ctx, "-", a, m.limits)
	}
	if info, err := os.Stat(p.path); err == nil && info.IsDir() {
		return oci.Digest{}, archive.ErrCannotWrite.New(nil, "%s is a folder", p.path).
			WithDo("Name a file, or write oci:%s for an OCI layout in that folder.", p.path)
	}
	return m.env.writeArchive(ctx, p.path, a, m.limits)
}

// bare is an artifact without the platform beside its root: registries do not tell
// it, and a file must be the same however the package came to it.
type bare struct{ oci.Artifact }

// Root implements oci.Artifact.
func (b bare) Root() oci.Descriptor {
	root := b.Artifact.Root()
	root.Platform = nil
	return root
}

// messages returns the stream for the messages of a command that writes to the place:
// standard output, or standard error if the package itself goes there.
func (p place) messages(env *Env) io.Writer {
	switch p.kind {
	case inStream:
		return env.Stderr
	case inFile:
		return env.messages(p.path)
	}
	return env.Stdout
}

// at is a place with the digest of what is there now, for the line that a command
// ends with.
func (p place) at(d oci.Digest) string {
	if p.kind == inRegistry {
		return p.ref.WithDigest(d).String()
	}
	return p.String() + ": " + d.String()
}

// closing joins the error of a Close to that of a command.
func closing(err *error, c io.Closer) { *err = errors.Join(*err, c.Close()) }
