package author

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/indexlayer"
	"github.com/xpkg-dev/xpkg/pkg/oci/packagestream"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// readStream reads YAML up to one byte more than the limit; the reader then reports the excess.
func readStream(r io.Reader, limits xpkg.Limits) ([]byte, error) {
	most := limits.StreamBytes
	if most == 0 {
		most = limits.Fields()[0].Default
	}
	return io.ReadAll(io.LimitReader(r, int64(most)+1))
}

// LintCmd implements `xpkg lint`.
type LintCmd struct {
	Package string `arg:"" optional:"" default:"." help:"Package to check: the folder of a package, a file of YAML, a .xpkg file, oci:DIR, a reference, or - for standard input. Default is this folder."`
	Strict  bool   `help:"Treat warnings as errors."`
	ReportFlags
	location.FolderFlags
	location.TransferFlags

	// consents are what users have to consent to when they install the package. The check sets them.
	consents []string
}

// Run reports every problem of a package, and fails if there is one.
func (c *LintCmd) Run(env *terminal.Env) error {
	if err := c.CheckFormat(); err != nil {
		return err
	}
	findings, err := fileutil.Await(env.Context, func() ([]xpkg.Finding, error) { return c.findings(env) })
	if err != nil {
		return err
	}
	if err := c.WriteReport(env.Stdout, findings); err != nil {
		return err
	}
	text, failed := CountFindings(findings)
	fmt.Fprintf(env.Stderr, "%s: %s\n", terminal.SafeLine(c.Package), text)
	for _, text := range c.consents {
		fmt.Fprintf(env.Stderr, "note: %s\n", terminal.Safe(text))
	}
	if failed {
		return terminal.ExitCode(errcode.Invalid.Exit)
	}
	return nil
}

// findings checks the named source with the policy for package authors.
func (c *LintCmd) findings(env *terminal.Env) ([]xpkg.Finding, error) {
	at, err := location.Parse(c.Package)
	if err != nil {
		return nil, err
	}
	if at.Kind == location.Stream {
		return c.standardInput(env)
	}
	if at.Kind != location.File {
		return c.lintImage(env, at)
	}
	info, err := os.Stat(at.Path)
	switch {
	case err == nil && info.IsDir() && !isLayout(at.Path):
		return c.lintFolder(env, at.Path)
	case err == nil && !info.IsDir() && IsYAMLFile(at.Path):
		return c.file(env, at.Path)
	case errors.Is(err, os.ErrNotExist) && !IsYAMLFile(at.Path) && filepath.Ext(at.Path) != ".xpkg":
		return nil, xpkg.ErrFolderNotFound.New(nil, "the folder or file %s does not exist", at.Path).
			WithDo("Check the path. A reference must have a :tag or an @sha256 digest.")
	}
	return c.lintImage(env, at)
}

// IsYAMLFile reports whether the extension of a file is that of YAML.
func IsYAMLFile(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

// isLayout reports whether a folder is an OCI layout rather than a package.
func isLayout(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, "oci-layout"))
	return err == nil
}

// tarMagic is the text at offset tarMagicAt of every tar.
const tarMagic, tarMagicAt = "ustar", 257

// standardInput checks an archive or a stream of YAML on standard input.
func (c *LintCmd) standardInput(env *terminal.Env) ([]xpkg.Finding, error) {
	in := bufio.NewReader(env.Input())
	head, err := in.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, location.ErrReadFile.New(err, "cannot read standard input")
	}
	if len(head) == 512 && bytes.HasPrefix(head[tarMagicAt:], []byte(tarMagic)) {
		archive := *env
		archive.Stdin = in
		return c.lintImage(&archive, location.Location{Kind: location.Stream})
	}
	stream, err := readStream(in, c.StreamLimits())
	if err != nil {
		return nil, location.ErrReadFile.New(err, "cannot read standard input")
	}
	return c.lintStream(env.Context, stream, "-")
}

func (c *LintCmd) file(env *terminal.Env, path string) (_ []xpkg.Finding, err error) {
	f, err := env.OpenInput(path)
	if err != nil {
		return nil, location.ErrReadFile.New(err, "cannot read a file")
	}
	defer terminal.Close(&err, f)
	stream, err := readStream(f, c.StreamLimits())
	if err != nil {
		return nil, location.ErrReadFile.New(err, "cannot read a file")
	}
	return c.lintStream(env.Context, stream, filepath.ToSlash(path))
}

func (c *LintCmd) lintFolder(env *terminal.Env, dir string) ([]xpkg.Finding, error) {
	p := terminal.StartTask(env.Stderr, "checking %s", dir)
	defer p.End()
	if f, ok, err := findFirst(dir); err != nil || ok {
		if err != nil {
			return nil, err
		}
		return c.lintFirstFolder(f)
	}
	_, pkg, embedded, found, err := LintFolder(env.Context, c.FolderFlags, dir, c.Strict, c.StreamLimits())
	if err != nil || pkg == nil {
		return found, err
	}
	more, err := CompositionFindings(env.Context, pkg, embedded, c.Strict)
	if err != nil {
		return nil, err
	}
	found = append(found, c.Place(dir, more)...)
	xpkg.SortFindings(found)
	c.consents = consents(pkg)
	return found, nil
}

// lintStream returns the findings about a stream, and notes the consents.
func (c *LintCmd) lintStream(ctx context.Context, stream []byte, name string) ([]xpkg.Finding, error) {
	policy := authorPolicy(c.Strict)
	pkg, found := xpkg.Inspect(stream, xpkg.ReadOptions{File: name, Policy: policy, Limits: c.StreamLimits()})
	compositions, err := CompositionFindings(ctx, pkg, nil, c.Strict)
	if err != nil {
		return nil, err
	}
	found = slices.Concat(found, check.Package(pkg, everyCheck(policy, c.StreamLimits())), compositions)
	xpkg.SortFindings(found)
	c.consents = consents(pkg)
	return found, nil
}

// lintImage checks the package.yaml of an image, and that its index layer matches.
func (c *LintCmd) lintImage(env *terminal.Env, at location.Location) (_ []xpkg.Finding, err error) {
	p := terminal.StartTask(env.Stderr, "reading %s", at)
	defer p.End()
	m, err := c.NewTransfer(env, p, at)
	if err != nil {
		return nil, err
	}
	defer m.Remote.Close()
	o, err := m.Open(env.Context, at)
	if err != nil {
		return nil, err
	}
	defer terminal.Close(&err, o)
	manifest, err := oci.FindManifest(env.Context, o, oci.Platform{}, m.Limits)
	if err != nil {
		return nil, err
	}
	content, err := packagestream.ReadContent(env.Context, o, manifest, packagestream.Options{
		Limits: m.Limits, Format: c.StreamLimits(),
	})
	if xpkg.Findings(err) != nil || content.First != nil {
		found, err := lintFirst(content.First, err, c.Strict, c.StreamLimits())
		return firstgen.PlaceFindings(firstgen.Folder, append(found, c.lintTag(at, content.Stream, "app.yaml")...)), err
	}
	if err != nil {
		return nil, err
	}
	found, err := c.lintStream(env.Context, content.Stream, oci.PackageFile)
	if err != nil {
		return nil, err
	}
	found = append(found, c.lintTag(at, content.Stream, oci.PackageFile)...)
	if lie := c.lintIndex(env, o, manifest, content.Stream); lie != nil {
		found = append(found, *lie)
	}
	if at.Kind == location.Registry {
		return found, nil // The layers of the runtime are large.
	}
	lost, err := c.lintRuntime(env.Context, o, manifest, content.Stream, m.Limits)
	if lost != nil {
		found = append(found, *lost)
	}
	return found, err
}

// lintTag reports a package of the first generation, or one that was converted from it, whose version, which file
// states, differs from the tag of its image.
func (c *LintCmd) lintTag(at location.Location, stream []byte, file string) []xpkg.Finding {
	if at.Kind != location.Registry {
		return nil
	}
	meta, err := xpkg.ReadMeta(stream, xpkg.ReadOptions{Limits: c.StreamLimits()})
	if err != nil {
		return nil // The check of the package reports metadata that cannot be read.
	}
	if err := firstgen.CheckConvertedTag(meta, at.Ref.Tag); err != nil {
		return []xpkg.Finding{{
			Code: firstgen.ErrVersionMismatch, Severity: xpkg.Error, Message: err.Error(), File: file, Fix: errcode.From(err).Do,
		}}
	}
	return nil
}

// lintIndex compares the index layer with the package, if there is one and the
// package can be read.
func (c *LintCmd) lintIndex(env *terminal.Env, a oci.Artifact, m oci.Manifest, stream []byte) *xpkg.Finding {
	layer := indexlayer.Find(m)
	pkg, err := xpkg.Read(stream, xpkg.ReadOptions{Limits: c.StreamLimits()})
	if layer == nil || err != nil {
		return nil
	}
	index, err := indexlayer.Read(env.Context, a, *layer)
	if err == nil {
		err = index.Matches(pkg)
	}
	if err == nil {
		return nil
	}
	return &xpkg.Finding{
		Code: indexlayer.ErrMismatch, Severity: xpkg.Error,
		Message: "the index layer does not match the package: " + err.Error(), Fix: indexlayer.ErrMismatch.Fix,
	}
}
