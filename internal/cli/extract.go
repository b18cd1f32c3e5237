package cli

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
)

type extractCmd struct {
	Package  string `arg:"" optional:"" help:"What to extract from: a reference, a .xpkg file, oci:DIR for the folder of an OCI layout, or - for standard input."`
	Output   string `short:"o" placeholder:"FILE" help:"File to write, or - for standard output. A name that ends in .gz compresses the file. Default is -."`
	FromXpkg bool   `help:"Take the argument for a file, whatever it looks like. Without one it is the only .xpkg file in this folder."`
	Platform string `placeholder:"OS/ARCH" help:"Platform to choose when there are several. Default is linux/amd64."`
	transferFlags
}

// Run writes the package.yaml of a package, byte for byte.
func (c *extractCmd) Run(env *Env) error {
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
	err = env.writeOutput(c.Output, archive.ErrCannotWrite, func(w io.Writer) error {
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
	_, err = fmt.Fprintf(env.Stdout, "%s: %s\n", safe(c.Output), size(int64(len(stream))))
	return err
}

func (c *extractCmd) source() (place, error) {
	switch {
	case !c.FromXpkg && c.Package == "":
		return place{}, ErrUsage.New(nil, "extract needs a package").WithDo("Name a reference or a file, or give --from-xpkg for the .xpkg file in this folder.")
	case !c.FromXpkg:
		return parsePlace(c.Package)
	case c.Package == "":
		file, err := onePackageFile(".")
		return place{kind: inFile, path: file}, err
	}
	return place{kind: inFile, path: c.Package}, nil
}

func (c *extractCmd) read(env *Env, from place) (stream []byte, err error) {
	err = c.withPackage(env, from, c.Platform, func(m mover, o *opened, manifest oci.Manifest) (err error) {
		stream, err = oci.PackageYAML(env.Context, o, manifest, m.limits)
		return err
	})
	return stream, err
}
