package xpkg

import (
	"cmp"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/yamldoc"
)

// ReadOptions configures Read. The zero value reads a published package with the default
// limits.
type ReadOptions struct {
	// File is the name of the stream in messages. Default "package.yaml".
	File string
	// Expect is the kind that the package must have; empty for any.
	Expect Kind
	// Limits bounds the input.
	Limits Limits
	// Policy determines which findings are errors.
	Policy Policy
}

// Read reads the content of a package.yaml (xpkg specification, package.yaml Contents). It
// reads documents in parallel. The package refers to the stream, which must not be changed.
//
// The error has the code of the first problem, and Findings returns all of them. Its
// class is Limit if the stream exceeds a limit, and Invalid otherwise.
func Read(stream []byte, opts ReadOptions) (*Package, error) {
	docs, err := opts.split(stream)
	if err != nil {
		return nil, err
	}
	return readPackage(docs, opts)
}

// Inspect returns the readable part of a package, with all findings. Use it to show a package
// that Read refuses; a package with errors must not be installed.
func Inspect(stream []byte, opts ReadOptions) (*Package, []Finding) {
	docs, err := opts.split(stream)
	if err != nil {
		return &Package{}, Findings(err)
	}
	return assemble(docs, opts, nil, nil)
}

func (o ReadOptions) split(stream []byte) ([]Document, error) {
	docs, f := split(stream, o.file(), o.reader())
	if f != nil {
		return nil, refuse([]Finding{placed(f, o.file())}, "cannot split YAML")
	}
	return docs, nil
}

// file returns the name of the stream.
func (o ReadOptions) file() string { return cmp.Or(o.File, "package.yaml") }

// reader returns a reader of YAML for one stream.
func (o ReadOptions) reader() *yamldoc.Reader {
	r := yamldoc.NewReader(o.Limits.yaml())
	r.Lenient = o.Policy.lenient
	return r
}

// readPackage builds a package from its documents, or returns an error.
func readPackage(docs []Document, opts ReadOptions) (*Package, error) {
	pkg, findings := assemble(docs, opts, nil, nil)
	return accepted(pkg, findings)
}

// accepted returns a package with its findings, or an error if there are errors among them.
func accepted(pkg *Package, findings []Finding) (*Package, error) {
	if len(errorsOf(findings)) > 0 {
		return nil, refuse(findings, "the package is refused")
	}
	pkg.Findings = findings
	return pkg, nil
}

// assemble builds the readable part of a package, and adds all problems to the findings about
// files that could not be split. Omitted lists files that look like metadata and were not
// read. The returned findings have their severities and are sorted.
func assemble(docs []Document, opts ReadOptions, found []Finding, omitted []string) (*Package, []Finding) {
	a := newAssembler(opts)
	a.omitted = omitted
	a.findings, a.unread = append(a.findings, found...), len(found)
	a.read(docs)
	return a.assemble()
}
