package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/indexlayer"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

type buildCmd struct {
	Kind        string `arg:"" optional:"" enum:",provider,configuration,function" default:"" help:"Kind that the package must have: provider, configuration or function."`
	PackageRoot string `short:"f" default:"." placeholder:"DIR" help:"Folder of the package: the one with crossplane.yaml. Default is this folder."`
	PackageFile string `short:"o" placeholder:"FILE" help:"File to write, or - for standard output. Default is NAME-DIGEST.xpkg in the folder of the package."`
	Strict      bool   `help:"Take warnings for errors."`
	runtimeFlags
	folderFlags
	transferFlags
}

// Run builds a package and says what it is.
func (c *buildCmd) Run(env *Env) (err error) {
	p := begin(env.Stderr, "checking the package in %s", c.PackageRoot)
	defer p.end()
	folder, err := c.read(c.PackageRoot, c.streamLimits())
	if err != nil {
		return err
	}
	pkg, err := c.check(p, folder)
	if err != nil {
		return err
	}
	stream := folder.Stream()
	index, err := indexlayer.Build(stream, c.streamLimits())
	if err != nil {
		return err
	}
	p.end()
	base, done, err := c.runtime(env, c.transferFlags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	platform, err := parsePlatform(c.Platform)
	if err != nil {
		return err
	}
	image, err := image.Build(env.Context, image.Input{
		PackageYAML: stream, Examples: folder.Examples(), Extra: []image.ExtraLayer{index}, Base: base, Platform: platform,
	})
	if err != nil {
		return err
	}
	return c.write(env, pkg, image)
}

// check makes every check there is. Warnings are told; a refusal is one sentence, as
// every failure, and lint tells the rest.
func (c *buildCmd) check(w io.Writer, folder *xpkg.Folder) (*xpkg.Package, error) {
	policy := authorPolicy(c.Strict)
	read := xpkg.ReadOptions{Expect: xpkg.Kind(kindOf(c.Kind)), Policy: policy, Limits: c.streamLimits()}
	findings := c.place(c.PackageRoot, check.Folder(folder, read, everyCheck(policy, c.streamLimits())))
	if err := xpkg.Failed(findings); err != nil {
		f := errcode.From(err)
		if len(findings) > 1 {
			f = f.WithDo("%s See everything with `xpkg lint %s`.", f.Do, c.PackageRoot)
		}
		return nil, f
	}
	if err := writeFindings(w, findings); err != nil {
		return nil, err
	}
	return folder.Package(read)
}

func (c *buildCmd) write(env *Env, pkg *xpkg.Package, image *image.Image) error {
	file := c.PackageFile
	if file == "" {
		file = filepath.Join(c.PackageRoot, oci.FriendlyID(pkg.Meta.Name, image.Digest().Hex())+".xpkg")
	}
	if _, err := env.writeArchive(env.Context, file, bare{image}, c.imageLimits()); err != nil {
		return err
	}
	if c.Verbose {
		if err := tellLayers(env, image); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(env.messages(file), "%s: %s %s with %s, %s\n", safe(file), pkg.Meta.Kind, safe(pkg.Meta.Name), wording.Count(len(pkg.Objects), "object"), image.Digest())
	return err
}

func tellLayers(env *Env, image *image.Image) error {
	m, err := image.Manifest()
	if err != nil {
		return err
	}
	for _, l := range m.Layers {
		fmt.Fprintf(env.Stderr, "layer %s, %s %s\n", l.Digest, size(l.Size), safe(l.Annotations[oci.AnnotationKey]))
	}
	return nil
}

// onePackageFile is the only .xpkg file of a folder.
func onePackageFile(dir string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*.xpkg"))
	if err != nil {
		return "", err
	}
	switch len(found) {
	case 0:
		return "", archive.ErrArchiveNotFound.New(nil, "there is no .xpkg file in this folder").WithDo("Build one with `xpkg build`, or name one with -f.")
	case 1:
		return found[0], nil
	}
	return "", ErrUsage.New(nil, "there are %d .xpkg files in this folder: %s", len(found), strings.Join(found, ", ")).WithDo("Say which one with -f.")
}
