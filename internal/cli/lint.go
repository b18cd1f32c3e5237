package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/indexlayer"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// ErrReadFile is the failure of a file, or of standard input, that cannot be read.
var ErrReadFile = errcode.Code{
	Name: "ReadFile", Class: errcode.NotFound,
	Cause: "A file that was named, or standard input, cannot be read.",
	Fix:   "Check the path and its permissions.",
}

type lintCmd struct {
	Package string `arg:"" optional:"" default:"." help:"What to check: the folder of a package, a file of YAML, a .xpkg file, oci:DIR, a reference, or - for standard input. Default is this folder."`
	Strict  bool   `help:"Take warnings for errors."`
	SARIF   bool   `name:"sarif" help:"Print a SARIF report, which code hosts show beside the lines."`
	outputFlag
	folderFlags
	transferFlags
}

// Run tells everything that is wrong with a package. It fails when anything is.
func (c *lintCmd) Run(env *Env) error {
	if c.SARIF && c.Output != "" {
		return ErrUsage.New(nil, "--sarif and --output cannot be used together")
	}
	findings, err := c.findings(env)
	if err != nil {
		return err
	}
	if err := c.write(env.Stdout, findings); err != nil {
		return err
	}
	text, failed := count(findings)
	fmt.Fprintf(env.Stderr, "%s: %s\n", safe(c.Package), text)
	if failed {
		return exitCode(errcode.Invalid.Exit)
	}
	return nil
}

func (c *lintCmd) write(w io.Writer, findings []xpkg.Finding) error {
	if c.SARIF {
		report, err := check.SARIF(findings)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n", report)
		return err
	}
	if findings == nil {
		findings = []xpkg.Finding{}
	}
	return c.print(w, findings, func(w io.Writer) error { return writeFindings(w, findings) })
}

// findings checks whatever was named, by the rules for authors.
func (c *lintCmd) findings(env *Env) ([]xpkg.Finding, error) {
	at, err := parsePlace(c.Package)
	if err != nil {
		return nil, err
	}
	if at.kind == inStream {
		return c.standardInput(env)
	}
	if at.kind != inFile {
		return c.lintImage(env, at)
	}
	info, err := os.Stat(at.path)
	switch {
	case err == nil && info.IsDir() && !isLayout(at.path):
		return c.lintFolder(env, at.path)
	case err == nil && !info.IsDir() && isYAMLFile(at.path):
		return c.file(at.path)
	case errors.Is(err, os.ErrNotExist) && !isYAMLFile(at.path) && filepath.Ext(at.path) != ".xpkg":
		return nil, xpkg.ErrFolderNotFound.New(nil, "there is no folder or file %s", at.path).
			WithDo("Check the path. A reference needs a :tag or an @sha256 digest to be one.")
	}
	return c.lintImage(env, at)
}

func isYAMLFile(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

// isLayout tells the folder of an OCI layout from that of a package.
func isLayout(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, "oci-layout"))
	return err == nil
}

// tarMagic stands at this place of every tar.
const tarMagic, tarMagicAt = "ustar", 257

// standardInput checks an archive, or a stream of YAML as generators write it.
func (c *lintCmd) standardInput(env *Env) ([]xpkg.Finding, error) {
	in := bufio.NewReader(env.Stdin)
	head, err := in.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, ErrReadFile.New(err, "cannot read standard input")
	}
	if len(head) == 512 && bytes.HasPrefix(head[tarMagicAt:], []byte(tarMagic)) {
		archive := *env
		archive.Stdin = in
		return c.lintImage(&archive, place{kind: inStream})
	}
	stream, err := readStream(in, c.streamLimits())
	if err != nil {
		return nil, ErrReadFile.New(err, "cannot read standard input")
	}
	return c.lintStream(stream, "-"), nil
}

func (c *lintCmd) file(path string) (_ []xpkg.Finding, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, ErrReadFile.New(err, "cannot read a file")
	}
	defer closing(&err, f)
	stream, err := readStream(f, c.streamLimits())
	if err != nil {
		return nil, ErrReadFile.New(err, "cannot read a file")
	}
	return c.lintStream(stream, filepath.ToSlash(path)), nil
}

func (c *lintCmd) lintFolder(env *Env, dir string) ([]xpkg.Finding, error) {
	p := begin(env.Stderr, "checking %s", dir)
	defer p.end()
	folder, err := c.read(dir, c.streamLimits())
	if found := xpkg.Findings(err); found != nil {
		return c.place(dir, found), nil
	}
	if err != nil {
		return nil, err
	}
	policy := authorPolicy(c.Strict)
	found := check.Folder(folder, xpkg.ReadOptions{Policy: policy, Limits: c.streamLimits()}, everyCheck(policy, c.streamLimits()))
	return c.place(dir, found), nil
}

func (c *lintCmd) lintStream(stream []byte, name string) []xpkg.Finding {
	policy := authorPolicy(c.Strict)
	return check.Stream(stream, xpkg.ReadOptions{File: name, Policy: policy, Limits: c.streamLimits()}, everyCheck(policy, c.streamLimits()))
}

// lintImage checks the package.yaml of an image, and that its index layer is true.
func (c *lintCmd) lintImage(env *Env, at place) (_ []xpkg.Finding, err error) {
	p := begin(env.Stderr, "reading %s", at)
	defer p.end()
	m, err := c.mover(env, p, at)
	if err != nil {
		return nil, err
	}
	defer m.remote.Close()
	o, err := m.open(env.Context, at)
	if err != nil {
		return nil, err
	}
	defer closing(&err, o)
	manifest, err := oci.FindManifest(env.Context, o, oci.Platform{}, m.limits)
	if err != nil {
		return nil, err
	}
	stream, err := oci.PackageYAML(env.Context, o, manifest, m.limits)
	if err != nil {
		return nil, err
	}
	found := c.lintStream(stream, "package.yaml")
	if lie := c.lintIndex(env, o, manifest, stream); lie != nil {
		found = append(found, *lie)
	}
	return found, nil
}

// lintIndex compares the index layer with the package, if there is one and the
// package can be read.
func (c *lintCmd) lintIndex(env *Env, a oci.Artifact, m oci.Manifest, stream []byte) *xpkg.Finding {
	layer := indexlayer.Find(m)
	pkg, err := xpkg.Read(stream, xpkg.ReadOptions{Limits: c.streamLimits()})
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
	return &xpkg.Finding{Code: indexlayer.ErrMismatch, Severity: xpkg.Error, Message: "the index layer is not that of the package: " + err.Error(), Fix: indexlayer.ErrMismatch.Fix}
}
