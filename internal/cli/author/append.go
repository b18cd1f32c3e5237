package author

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
)

// ErrExtensions is the code for an invalid folder of extensions.
var ErrExtensions = errcode.Code{
	Name: "Extensions", Class: errcode.Usage,
	Cause: "The folder of the extensions cannot be read, is empty, or is too large.",
	Fix:   "Use a folder with at least one file. Each file or folder in it becomes a layer annotated with its name.",
}

// AppendCmd implements `xpkg append`.
type AppendCmd struct {
	Package        string `arg:"" name:"src" help:"Package to add to: a reference, a .xpkg file or oci:DIR."`
	ExtensionsRoot string `default:"./extensions" placeholder:"DIR" help:"Folder of the extensions. Each file or folder in it becomes a layer annotated with its name; names that start with a dot are ignored. Default is ./extensions."`
	Destination    string `short:"d" placeholder:"DST" help:"Destination. By default the package is replaced."`
	location.TransferFlags
	flags.DataDirFlag
}

// Run adds an extensions manifest to the end of the index of a package (xpkg specification, "Manifests"). The
// package itself does not change.
func (c *AppendCmd) Run(env *terminal.Env) (err error) {
	from, err := location.Parse(c.Package)
	if err != nil {
		return err
	}
	to := from
	if c.Destination != "" {
		if to, err = location.Parse(c.Destination); err != nil {
			return err
		}
	}
	if to.Kind == location.Registry && !to.Ref.Digest.IsZero() {
		return terminal.ErrUsage.New(nil, "the result has a different digest than %s", to).
			WithDo("Set a tag with --destination.")
	}
	layers, err := extensionLayers(c.ExtensionsRoot, c.ImageLimits().WithDefaults().Image)
	if err != nil {
		return err
	}
	extensions, err := image.BuildExtensions(layers)
	if err != nil {
		return err
	}
	return c.append(env, from, to, extensions)
}

func (c *AppendCmd) append(env *terminal.Env, from, to location.Location, extensions *image.Image) error {
	p := terminal.StartTask(env.Stderr, "appending to %s", from)
	defer p.End()
	c.Keychain = c.WriteKeychain()
	return c.Rewrite(env, p, from, to, func(m location.Transfer, o *location.Opened) (oci.Artifact, string, error) {
		index, err := image.AppendExtensions(env.Context, beside{o, extensions}, extensions, m.Limits)
		return index, from.Ref.Tag, err
	})
}

// beside is a package with its extensions. It reads local content locally, so that the registry is contacted
// only for content that it has.
type beside struct {
	oci.Artifact
	added oci.Artifact
}

// Open implements oci.Artifact.
func (b beside) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	if r, err := b.added.Open(ctx, d); !errors.Is(err, oci.ErrBlobNotFound) {
		return r, err
	}
	return b.Artifact.Open(ctx, d)
}

// extensionLayers returns a layer for each file or folder in a folder, annotated with its name without the
// extension. It does not follow links.
func extensionLayers(dir string, most int64) ([]image.ExtraLayer, error) {
	root, err := fileutil.OpenFolder(dir)
	if err != nil {
		return nil, ErrExtensions.New(err, "cannot read the folder of the extensions")
	}
	defer root.Close()
	w := extensionWalk{fsys: root.FS(), most: most}
	err = fs.WalkDir(w.fsys, ".", w.visit)
	var known *errcode.Error
	switch {
	case errors.As(err, &known):
		return nil, err
	case err != nil:
		return nil, ErrExtensions.New(err, "cannot read the folder of the extensions")
	case len(w.layers) == 0:
		return nil, ErrExtensions.New(nil, "the folder %s is empty", dir)
	}
	return w.layers, nil
}

type extensionWalk struct {
	fsys       fs.FS
	layers     []image.ExtraLayer
	read, most int64
}

func (w *extensionWalk) visit(name string, entry fs.DirEntry, err error) error {
	if err != nil || name == "." {
		return err
	}
	if strings.HasPrefix(name, ".") {
		if entry.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	if !entry.Type().IsRegular() {
		return nil
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	if w.read += info.Size(); w.read > w.most {
		return ErrExtensions.New(nil, "the extensions are larger than %d bytes (--max-image-size)", w.most)
	}
	data, err := fs.ReadFile(w.fsys, name)
	if err != nil {
		return err
	}
	top, _, isFolder := strings.Cut(name, "/")
	if !isFolder {
		top = strings.TrimSuffix(top, path.Ext(top))
	}
	w.add(top, image.File{Path: name, Data: data})
	return nil
}

// add adds a file to the layer of an annotation.
func (w *extensionWalk) add(annotation string, file image.File) {
	for i := range w.layers {
		if w.layers[i].Annotation == annotation {
			w.layers[i].Files = append(w.layers[i].Files, file)
			return
		}
	}
	w.layers = append(w.layers, image.ExtraLayer{Annotation: annotation, Files: []image.File{file}})
}
