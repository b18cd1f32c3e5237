package artifact

import (
	"compress/gzip"
	"errors"
	"io"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/packagestream"
)

// ExtractCmd implements `xpkg extract`.
type ExtractCmd struct {
	Package  string `arg:"" optional:"" help:"Package to extract from: a reference, a .xpkg file, oci:DIR for the folder of an OCI layout, or - for standard input."`
	Output   string `short:"o" placeholder:"FILE" help:"File to write, or - for standard output. A name that ends in .gz compresses the file. Default is -."`
	FromXpkg bool   `help:"Treat the argument as a file. Without an argument, read the only .xpkg file in this folder."`
	Platform string `placeholder:"OS/ARCH" help:"Platform to choose when there are several. Default is linux/amd64."`
	location.TransferFlags
}

// Run writes the package.yaml of a package, byte for byte.
func (c *ExtractCmd) Run(env *terminal.Env) error {
	from, err := c.source()
	if err != nil {
		return err
	}
	stream, err := c.read(env, from)
	if err != nil {
		return err
	}
	if c.Output == "" {
		c.Output = "-"
	}
	err = env.WriteOutput(c.Output, archive.ErrCannotWrite, func(w io.Writer) error {
		if !strings.HasSuffix(c.Output, ".gz") {
			_, err := w.Write(stream)
			return err
		}
		z := gzip.NewWriter(w)
		_, err := z.Write(stream)
		return errors.Join(err, z.Close())
	})
	if err != nil || fileutil.IsStdout(c.Output) {
		return err
	}
	return env.Say("%s: %s\n", terminal.Safe(c.Output), terminal.Size(int64(len(stream))))
}

func (c *ExtractCmd) source() (location.Location, error) {
	switch {
	case !c.FromXpkg && c.Package == "":
		return location.Location{}, terminal.ErrUsage.New(nil, "no package is given").
			WithDo("Name a reference or a file, or use --from-xpkg for the .xpkg file in this folder.")
	case !c.FromXpkg:
		return location.Parse(c.Package)
	case c.Package == "":
		file, err := location.OnePackageFile(".")
		return location.Location{Kind: location.File, Path: file}, err
	}
	return location.Location{Kind: location.File, Path: c.Package}, nil
}

func (c *ExtractCmd) read(env *terminal.Env, from location.Location) (text []byte, err error) {
	err = c.WithPackage(env,
		from, c.Platform, func(m location.Transfer, o *location.Opened, manifest oci.Manifest) (err error) {
			text, err = packagestream.Read(env.Context, o, manifest, packagestream.Options{Limits: m.Limits})
			return err
		})
	return text, err
}
