// Package location opens and writes packages at the locations that users name: registries,
// files, OCI layouts, folders and the standard streams.
package location

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// Location is the source or the destination of a package. Its text determines its kind:
//
//   - standard input or output
//     oci:DIR      the folder of an OCI layout; oci:DIR:TAG and oci:DIR@DIGEST select one image
//     PATH         a file: text that starts with / ./ or ../, or contains neither : nor @, or the path of an
//     existing file that ends in .xpkg or contains a separator
//     REFERENCE    any other text: a reference contains a tag or a digest
type Location struct {
	Kind Kind
	// Path is the path of the file or folder.
	Path string
	// Tag or Digest select an image of an OCI layout.
	Tag    string
	Digest oci.Digest
	Ref    oci.Reference
}

// Kind is the kind of a location.
type Kind int

// Kinds of locations.
const (
	Stream Kind = iota
	File
	Layout
	Registry
)

// LayoutPrefix marks the folder of a layout, as in skopeo and oras.
const LayoutPrefix = "oci:"

// Parse parses a location. References are fully qualified.
func Parse(s string) (Location, error) {
	switch {
	case s == "-":
		return Location{Kind: Stream}, nil
	case strings.HasPrefix(s, LayoutPrefix) && !strings.HasPrefix(s, LayoutPrefix+"//"):
		return parseLayout(strings.TrimPrefix(s, LayoutPrefix))
	case IsPath(s):
		return Location{Kind: File, Path: s}, nil
	}
	ref, err := flags.ParseReference(s)
	if err != nil {
		// No reference has the form of paths such as boats@v1/package.
		if _, missing := os.Stat(s); missing == nil {
			return Location{Kind: File, Path: s}, nil
		}
	}
	return Location{Kind: Registry, Ref: ref}, err
}

// IsPath reports whether text is the path of a file and not a reference.
func IsPath(s string) bool {
	for _, prefix := range []string{"/", "./", "../", `.\`, `..\`, `\`} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return filepath.VolumeName(s) != "" || !strings.ContainsAny(s, ":@") || isExistingFile(s)
}

// isExistingFile reports whether text that could be a reference is the path of a file, such as cache/boats@v1.xpkg.
func isExistingFile(s string) bool {
	if !strings.HasSuffix(s, ".xpkg") &&
		!strings.ContainsFunc(s, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) }) {
		return false
	}
	info, err := os.Stat(s)
	return err == nil && info.Mode().IsRegular()
}

// IsPackageFile reports whether text is the path of a package file, such as boats.xpkg.
func IsPackageFile(s string) bool { return IsPath(s) && strings.HasSuffix(s, ".xpkg") }

// String returns the location as it was written, or the fully qualified reference.
func (p Location) String() string {
	switch p.Kind {
	case Stream:
		return "-"
	case Layout:
		switch {
		case !p.Digest.IsZero():
			return LayoutPrefix + p.Path + "@" + p.Digest.String()
		case p.Tag != "":
			return LayoutPrefix + p.Path + ":" + p.Tag
		}
		return LayoutPrefix + p.Path
	case Registry:
		return p.Ref.String()
	}
	return p.Path
}

// registries returns the registries of locations.
func registries(places ...Location) []string {
	var hosts []string
	for _, p := range places {
		if p.Kind == Registry {
			hosts = append(hosts, p.Ref.Registry)
		}
	}
	return hosts
}

// Opened is the content of a location.
type Opened struct {
	oci.Artifact
	// place is the location, whose reference contains the digest.
	Location
	close func() error
}

// Close releases the content.
func (o *Opened) Close() error { return o.close() }

// Transfer reads and writes packages at locations.
type Transfer struct {
	env     *terminal.Env
	Remote  *remote.Client
	Limits  oci.Limits
	archive int64
}

// Open opens a location for reading. It resolves a tag once.
func (m Transfer) Open(ctx context.Context, p Location) (*Opened, error) {
	o := &Opened{Location: p, close: func() error { return nil }}
	switch p.Kind {
	case Registry:
		d, err := m.Remote.Resolve(ctx, p.Ref)
		if err != nil {
			return nil, err
		}
		o.Ref = p.Ref.WithDigest(d.Digest)
		o.Artifact, err = m.Remote.Artifact(ctx, o.Ref)
		return o, err
	case Stream:
		a, err := archive.Read(ctx, m.env.Input(), "", m.archive, m.Limits)
		if err != nil {
			return nil, err
		}
		o.Artifact, o.close = a, a.Close
		return o, nil
	}
	a, err := OpenPath(m.env, p, m.archive, m.Limits)
	if errors.Is(err, archive.ErrArchiveNotFound) && p.Kind == File && errors.Is(err, os.ErrNotExist) {
		return nil, archive.ErrArchiveNotFound.New(nil, "the file %s does not exist", p.Path).
			WithDo("Check the path. A reference must have a :tag or an @sha256 digest.")
	}
	if err != nil {
		return nil, err
	}
	o.Artifact, o.close = a, a.Close
	return o, nil
}

// OpenPath opens a file or an OCI layout. An image of a layout with several images is selected by
// its tag or digest. It reads at most limit bytes of a stream.
func OpenPath(env *terminal.Env, l Location, limit int64, limits oci.Limits) (*archive.Archive, error) {
	if l.Tag != "" || !l.Digest.IsZero() {
		return openLayout(l, limits)
	}
	if info, err := os.Stat(l.Path); err == nil && info.IsDir() {
		if entries, err := archive.Entries(l.Path, limits); err == nil && isCollection(entries) {
			return openLayout(l, limits)
		}
	}
	return OpenArchive(env, l.Path, limit, limits)
}

// IsStream reports whether a path can only be read sequentially: "-" (standard input), a named pipe or a
// device.
func IsStream(path string) bool {
	if path == "-" {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && !info.Mode().IsRegular()
}

// OpenArchive opens an archive or the folder of an OCI layout. It reads at most limit bytes of
// a stream.
func OpenArchive(env *terminal.Env, path string, limit int64, limits oci.Limits) (*archive.Archive, error) {
	if !IsStream(path) {
		a, err := archive.Open(env.Context, path, limits)
		return a, adviseBuild(err, path)
	}
	in, err := env.OpenInput(path)
	if err != nil {
		return nil, archive.ErrArchiveNotFound.New(err, "cannot open %s", path)
	}
	a, err := archive.Read(env.Context, in, "", limit, limits)
	return a, errors.Join(err, in.Close())
}

// adviseBuild adds to the error of a folder that is the source of a package how it is built.
func adviseBuild(err error, path string) error {
	if !errors.Is(err, archive.ErrNotAnArchive) {
		return err
	}
	if !IsSource(path) {
		return err
	}
	return errcode.From(err).WithDo(
		"The folder is the source of a package. Build it with `xpkg build -f %s -o package.xpkg`, and name that file.",
		wording.ShellWord(path),
	)
}

// IsSource reports whether a path is the folder of the source of a package, and not that of an OCI layout.
func IsSource(path string) bool { return Metadata(path) != "" }

// Write writes an artifact to a location. Tag is its name in an OCI layout; it can be empty.
func (m Transfer) Write(ctx context.Context, p Location, a oci.Artifact, tag string) (oci.Digest, error) {
	a = ArtifactOnly{a}
	switch p.Kind {
	case Registry:
		return oci.Copy(ctx, m.Remote.To(p.Ref), a)
	case Layout:
		if !p.Digest.IsZero() {
			return oci.Digest{}, terminal.ErrUsage.New(nil, "%s is a digest, to which an image cannot be written", p).
				WithDo("Use oci:DIR or oci:DIR:TAG.")
		}
		return oci.Copy(ctx, archive.ToLayout(p.Path, cmp.Or(p.Tag, tag), m.Limits), a)
	case Stream:
		return m.env.WriteArchive(ctx, "-", a, m.Limits)
	}
	if info, err := os.Stat(p.Path); err == nil && info.IsDir() {
		return oci.Digest{}, archive.ErrCannotWrite.New(nil, "%s is a folder", p.Path).
			WithDo("Name a file, or use %s for an OCI layout in this folder.", wording.ShellWord(LayoutPrefix+p.Path))
	}
	return m.env.WriteArchive(ctx, p.Path, a, m.Limits)
}

// ArtifactOnly is an artifact without the platform beside its root: registries do not return it, and a file must not
// depend on the source of the package.
type ArtifactOnly struct{ oci.Artifact }

// Root implements oci.Artifact.
func (b ArtifactOnly) Root() oci.Descriptor {
	root := b.Artifact.Root()
	root.Platform = nil
	return root
}

// Messages returns the stream for the messages of a command that writes to the location: standard output, or
// standard error if the package itself goes there.
func (p Location) Messages(env *terminal.Env) io.Writer {
	switch p.Kind {
	case Stream:
		return env.Stderr
	case File:
		return env.Messages(p.Path)
	}
	return env.Stdout
}

// At returns a location with the digest of its content, for the last line of a command.
func (p Location) At(d oci.Digest) string {
	if p.Kind == Registry {
		return p.Ref.WithDigest(d).String()
	}
	return p.String() + ": " + d.String()
}

// ParsePlatform parses a platform; it returns the zero value for an empty text.
func ParsePlatform(s string) (oci.Platform, error) {
	if s == "" {
		return oci.Platform{}, nil
	}
	return oci.ParsePlatform(s)
}
