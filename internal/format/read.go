package format

// ReadOptions says how a package is read. The zero value reads a package that
// somebody else built, with the default limits.
type ReadOptions struct {
	// File is the name of the stream in messages. Default "package.yaml".
	File string
	// Expect is the kind that the package must have; empty for any.
	Expect Kind
	// Limits bounds the input.
	Limits Limits
	// Policy says which findings refuse the package.
	Policy Policy
}

// Read reads the content of a package.yaml (xpkg specification, package.yaml
// Contents). All documents are read at the same time, as far as there are
// processors. The package refers to the stream, which must not be changed.
//
// The error is a failure with the code of the first thing that is wrong, and
// Findings gives all of them. It is of the class Limit when the stream breaks a
// limit, and Invalid otherwise.
func Read(stream []byte, opts ReadOptions) (*Package, error) {
	docs, err := opts.split(stream)
	if err != nil {
		return nil, err
	}
	return readPackage(docs, opts)
}

func (o ReadOptions) split(stream []byte) ([]Document, error) {
	file := o.File
	if file == "" {
		file = "package.yaml"
	}
	return Split(stream, file, o.Limits)
}

// readPackage makes a package from its documents, or refuses it.
func readPackage(docs []Document, opts ReadOptions) (*Package, error) {
	pkg, findings := assemble(docs, opts, nil)
	if len(errorsOf(findings)) > 0 {
		return nil, refuse(findings, "the package is refused")
	}
	pkg.Findings = findings
	return pkg, nil
}

// assemble makes what can be made of a package, and finds all that is wrong with
// it, besides what was found in files that could not be split. The findings have
// their severities and are in order.
func assemble(docs []Document, opts ReadOptions, found []Finding) (*Package, []Finding) {
	a := &assembler{opts: opts, limits: opts.Limits.withDefaults(), pkg: &Package{}}
	a.findings, a.unread = append(a.findings, found...), len(found)
	a.read(docs)
	a.meta()
	a.objects()
	a.checkEach()
	findings := opts.Policy.apply(a.findings)
	sortFindings(findings)
	return a.pkg, findings
}
