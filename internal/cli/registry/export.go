package registry

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/registry/web"
	"github.com/xpkg-dev/xpkg/internal/registry/web/export"
	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/catalog/docs"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// exportCmd implements `xpkg registry export`.
type exportCmd struct {
	Dir      string   `arg:"" help:"Folder to write. It must be empty, or not exist."`
	Packages []string `arg:"" optional:"" name:"package" help:"Versions of packages in registries, for example ghcr.io/acme/boats:v1.0.0."`
	From     []string `placeholder:"DIR" help:"Folder with packages as REPOSITORY/TAG.xpkg, or as folders REPOSITORY/TAG with the source of a package. Can be given more than once."`
	Index    string   `placeholder:"REF" help:"Index whose packages are exported, for example registry.example.org/index:main. Each version is read from its registry."`
	Versions int      `placeholder:"N" help:"With --index, read only the newest N versions of each package."`
	Name     string   `default:"Packages" help:"Name of the site."`
	content.IndexKeyFlag
	flags.CacheFlags
	view.OutputFlag
	location.TransferFlags
}

// Run writes the pages.
func (c *exportCmd) Run(env *terminal.Env) error {
	if len(c.Packages)+len(c.From) == 0 && c.Index == "" {
		return terminal.ErrUsage.New(nil, "there is nothing to export").
			WithDo("Name packages, a folder with --from, or an index with --index.")
	}
	if c.Versions < 0 || c.Versions > 0 && c.Index == "" {
		return terminal.ErrUsage.New(nil, "--versions %d is not a number of versions of an index", c.Versions).
			WithDo("Use --versions with --index only, with a positive number.")
	}
	task := terminal.StartTask(env.Stderr, "reading packages")
	defer task.End()
	options := folder.Options{Name: c.Name}
	versions, err := c.read(env, &options)
	if err != nil {
		return err
	}
	source, err := folder.New(versions, options)
	if err != nil {
		return err
	}
	handler, err := web.New(source, web.Options{Name: c.Name, Static: true})
	if err != nil {
		return err
	}
	dir, err := c.create()
	if err != nil {
		return err
	}
	defer dir.Close()
	result, err := export.Write(env.Context, handler, dir, func(done, total int) { task.Step(done, total, " pages") })
	if err != nil {
		return err
	}
	task.End()
	return c.Print(env.Stdout, result, func(w io.Writer) {
		fmt.Fprintf(
			w, "Wrote %s of %s into %s.\n", wording.Count(result.Files, "file"), wording.Count(len(versions), "version"),
			terminal.Safe(c.Dir),
		)
	})
}

// create creates and opens the folder.
func (c *exportCmd) create() (*os.Root, error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, terminal.ErrUsage.New(err, "cannot create the folder %s", terminal.Safe(c.Dir))
	}
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return nil, terminal.ErrUsage.New(err, "cannot read the folder %s", terminal.Safe(c.Dir))
	}
	if len(entries) > 0 {
		isComplete := slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == export.StartPage })
		failed := terminal.ErrUsage.New(nil, "the folder %s is not empty", terminal.Safe(c.Dir)).
			WithDo("Name an empty folder, or one that does not exist.")
		if !isComplete {
			failed = failed.WithDo(
				"Name an empty folder, or one that does not exist. If this folder is an export that did not end, delete it.",
			)
		}
		return nil, failed
	}
	return fileutil.OpenFolder(c.Dir)
}

// read reads all packages, and sets in the options what the index states beside them.
func (c *exportCmd) read(env *terminal.Env, options *folder.Options) ([]folder.Version, error) {
	var out []folder.Version
	for _, reference := range c.Packages {
		v, err := c.pull(env, reference)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	for _, dir := range c.From {
		versions, err := c.readFolder(env, dir)
		if err != nil {
			return nil, err
		}
		out = append(out, versions...)
	}
	if c.Index == "" {
		return out, nil
	}
	indexed, err := c.readIndex(env, options)
	return append(out, indexed...), err
}

// pull reads a package of a registry.
func (c *exportCmd) pull(env *terminal.Env, reference string) (folder.Version, error) {
	from, err := location.Parse(reference)
	if err != nil {
		return folder.Version{}, err
	}
	if from.Kind != location.Registry {
		return folder.Version{}, terminal.ErrUsage.New(nil, "%s is not a reference in a registry", terminal.Safe(reference)).
			WithDo("Use --from for files.")
	}
	v := folder.Version{Repository: from.Ref.Name(), Tag: cmp.Or(from.Ref.Tag, from.Ref.Digest.Short())}
	return v, c.readArtifact(env, from, &v)
}

// readArtifact reads the package at a location.
func (c *exportCmd) readArtifact(env *terminal.Env, from location.Location, v *folder.Version) error {
	return c.WithPackage(env, from, "", func(_ location.Transfer, o *location.Opened, m oci.Manifest) (err error) {
		v.Digest = m.Digest
		if created, err := time.Parse(time.RFC3339, m.Annotations["org.opencontainers.image.created"]); err == nil {
			v.Created = created
		}
		if v.Package, _, err = location.ReadPackage(env.Context, o, m, c.LimitFlags); err != nil {
			return err
		}
		// Content that is not valid has no examples; the pages of the package do not depend on them.
		if stream, err := oci.Examples(env.Context, o, m, c.ImageLimits()); err == nil {
			v.Examples, _ = docs.ParseExamples(stream)
		}
		return env.Context.Err()
	})
}
