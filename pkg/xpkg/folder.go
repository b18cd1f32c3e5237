package xpkg

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/parallel"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/yamldoc"
)

// Codes for a folder that cannot be read.
var (
	ErrFolderNotFound = errcode.Code{
		Name: "FolderNotFound", Class: errcode.NotFound,
		Cause: "The folder of the package does not exist, or is not a folder.",
		Fix:   "Name the folder that holds crossplane.yaml or the file of a Project.",
	}
	ErrUnreadableFile = errcode.Code{
		Name: "UnreadableFile", Class: errcode.Invalid,
		Cause: "A file of the folder cannot be read.",
		Fix:   "Make the file readable, or omit it with --ignore.",
	}
	ErrInvalidExample = errcode.Code{
		Name: "InvalidExample", Class: errcode.Invalid,
		Cause: "A file or document of the examples is not valid YAML. It is left out of the package, which is otherwise complete: examples are never installed.",
		Fix:   "Correct the example.",
	}
	ErrInvalidIgnore = errcode.Code{
		Name: "InvalidIgnore", Class: errcode.Usage,
		Cause: "A pattern of files to ignore is malformed.",
		Fix:   "Use patterns such as \"crds/*.yaml\", relative to the root of the package.",
	}
	ErrNotPackaged = errcode.Code{
		Name: "NotPackaged", Class: errcode.Invalid,
		Cause: "A document in a folder of a Project is not of a kind that this folder adds to the package. It is left out.",
		Fix:   "Correct the kind, move the file to another folder, or omit it with --ignore.",
	}
)

// testsFolder is the folder of the tests of compositions, which are objects of a group and a kind.
const (
	testsFolder = "tests/"
	testGroup   = "meta.dev.upbound.io"
	testKind    = "CompositionTest"
)

// FolderOptions configures ReadFolder.
type FolderOptions struct {
	// Ignore lists patterns of path.Match, relative to the root, of files to omit. They
	// match whole paths of files, not of folders.
	Ignore []string
	// ExamplesRoot is the path of the folder of examples within the root, which is not
	// part of the package itself; empty if the folder is outside of the root or does not
	// exist.
	ExamplesRoot string
	// Examples is the folder of examples if it is outside of the root.
	Examples fs.FS
	// Limits bounds the input, over all files together.
	Limits Limits
	// Layout is that of a folder whose package does not consist of all files; nil for others.
	Layout *Layout
}

// A Layout describes the package of a folder that has no file with its metadata.
type Layout struct {
	// Meta is the metadata of the package. It has no text if the metadata cannot be read.
	Meta Document
	// Findings are the problems of the file that the metadata was made from.
	Findings []Finding
	// Parts are the folders with the objects of the package.
	Parts []Part
}

// A Part is a folder whose objects of some kinds are in the package. A part that does not exist is empty.
type Part struct {
	// Folder is the path of the folder, and Except are the paths of folders in it that do not belong to it.
	Folder string
	Except []string
	// Kinds are the kinds of the objects. Other documents are left out, with a warning if the part is not the whole
	// folder of the package.
	Kinds []schema.GroupKind
}

// part returns the documents of the kinds of a part, and reports the others. A document that is no YAML is kept,
// because it may be any object.
func (r *folderReader) part(p Part, docs []Document) []Document {
	if p.Kinds == nil {
		return docs
	}
	entries := make([]entry, len(docs))
	parallel.Do(len(docs), func(i int) { entries[i] = readEntry(docs[i]) })
	var kept []Document
	for _, e := range entries {
		_, err := e.doc.canonical()
		switch {
		case err != nil || e.err == nil && slices.Contains(p.Kinds, e.header.gvk().GroupKind()):
			kept = append(kept, e.doc)
		case p.Folder != ".":
			what := "left out of the package, which has " + kindNames(p.Kinds) + " from this folder"
			if e.err != nil {
				what = e.err.Error() + "; " + what
			}
			f := e.doc.Finding(ErrNotPackaged, 0, what)
			f.Kind, f.Name = e.header.kind, e.header.name
			r.findings = append(r.findings, f)
		}
	}
	return kept
}

// A Folder holds the documents of a package folder.
type Folder struct {
	// Documents are the documents of the package in the order of package.yaml: the
	// metadata first, then by path.
	Documents []Document
	// ExampleDocuments are the documents of the examples, by path, including those that are not valid YAML.
	ExampleDocuments []Document

	findings []Finding
	omitted  []string // files that look like metadata and were not read

	validExamples   []Document
	exampleFindings []Finding
}

// ReadFolder reads the files of a package: non-empty regular files with the extension
// .yaml or .yml, in all folders except .git, the folder of the examples, and the folder
// tests if it contains a CompositionTest. Symbolic links are not followed. Files are
// ordered by name, so that the result is the same on every machine.
//
// It returns an error if the folder or a file cannot be read or exceeds a limit. Problems
// inside a file are reported by Package.
func ReadFolder(fsys fs.FS, opts FolderOptions) (*Folder, error) {
	r := &folderReader{opts: opts, limits: opts.Limits.WithDefaults(), reader: yamldoc.NewReader(opts.Limits.yaml())}
	if err := r.checkOptions(fsys); err != nil {
		return nil, err
	}
	if opts.ExamplesRoot != "" {
		r.opts.ExamplesRoot = path.Clean(opts.ExamplesRoot)
	}
	docs, err := r.readPackage(fsys)
	if err != nil {
		return nil, err
	}
	f := &Folder{Documents: docs, findings: r.findings, omitted: r.omitted}
	r.findings = nil
	if f.ExampleDocuments, err = r.readExamples(fsys); err != nil {
		return nil, err
	}
	f.exampleFindings = r.findings
	for _, d := range f.ExampleDocuments {
		if _, err := d.canonical(); err != nil {
			f.exampleFindings = append(f.exampleFindings, d.faultFinding(err))
		} else {
			f.validExamples = append(f.validExamples, d)
		}
	}
	for i := range f.exampleFindings {
		f.exampleFindings[i].Code, f.exampleFindings[i].Fix = ErrInvalidExample, ErrInvalidExample.Fix
	}
	return f, nil
}

// Package reads and checks the documents of the folder, and checks that the examples are
// YAML: those that are not are warnings. The result equals Read of the stream, except that
// messages name the author's files.
func (f *Folder) Package(opts ReadOptions) (*Package, error) {
	pkg, findings := f.Inspect(opts)
	if len(errorsOf(findings)) > 0 {
		return nil, refuse(findings, "the package is refused")
	}
	pkg.Findings = findings
	return pkg, nil
}

// Inspect returns the readable part of the folder as a package, with all findings of
// Package.
func (f *Folder) Inspect(opts ReadOptions) (*Package, []Finding) {
	pkg, findings := assemble(f.Documents, opts, f.findings, f.omitted)
	findings = append(findings, opts.Policy.Apply(slices.Clone(f.exampleFindings), severities)...)
	SortFindings(findings)
	return pkg, findings
}

// metaFirst moves the metadata to the front of the documents.
func metaFirst(docs []Document) []Document {
	meta := make([]bool, len(docs))
	parallel.Do(len(docs), func(i int) {
		e := readEntry(docs[i])
		meta[i] = e.err == nil && isMetaGroup(e.header.gvk().Group)
	})
	var first, rest []Document
	for i, d := range docs {
		if meta[i] {
			first = append(first, d)
		} else {
			rest = append(rest, d)
		}
	}
	return append(first, rest...)
}

type folderReader struct {
	opts     FolderOptions
	limits   Limits
	reader   *yamldoc.Reader
	bytes    int
	findings []Finding
	omitted  []string
}

func (r *folderReader) checkOptions(fsys fs.FS) error {
	for _, pattern := range r.opts.Ignore {
		if _, err := path.Match(pattern, ""); err != nil {
			return ErrInvalidIgnore.New(err, "cannot use the pattern %q", pattern)
		}
	}
	info, err := fs.Stat(fsys, ".")
	if err != nil {
		return ErrFolderNotFound.New(err, "cannot read the folder of the package")
	}
	if !info.IsDir() {
		return ErrFolderNotFound.New(nil, "the root of the package is not a folder")
	}
	return nil
}

// readPackage returns the documents of the package, the metadata first.
func (r *folderReader) readPackage(fsys fs.FS) ([]Document, error) {
	layout := r.opts.Layout
	if layout == nil {
		docs, err := r.read(fsys, ".", r.opts.ExamplesRoot)
		return metaFirst(r.withoutTests(docs)), err
	}
	r.findings = layout.Findings
	var docs []Document
	if layout.Meta.Raw != nil {
		docs = append(docs, layout.Meta)
	}
	for _, p := range layout.Parts {
		if info, err := fs.Lstat(fsys, p.Folder); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
			continue
		}
		found, err := r.read(fsys, p.Folder, slices.Concat(p.Except, []string{r.opts.ExamplesRoot})...)
		if err != nil {
			return nil, err
		}
		docs = append(docs, r.part(p, found)...)
	}
	return docs, nil
}

// withoutTests returns the documents without those of the folder of tests, if it contains a test of a composition: no
// package can contain one.
func (r *folderReader) withoutTests(docs []Document) []Document {
	in := func(file string) bool { return strings.HasPrefix(file, testsFolder) }
	if !slices.ContainsFunc(docs, func(d Document) bool {
		if !in(d.File) {
			return false
		}
		e := readEntry(d)
		return e.err == nil && e.header.kind == testKind && e.header.gvk().Group == testGroup
	}) {
		return docs
	}
	r.findings = slices.DeleteFunc(r.findings, func(f Finding) bool { return in(f.File) })
	return slices.DeleteFunc(docs, func(d Document) bool { return in(d.File) })
}

// readExamples reads the folder of examples. A missing folder is not an error.
func (r *folderReader) readExamples(fsys fs.FS) ([]Document, error) {
	root := r.opts.ExamplesRoot
	if r.opts.Examples != nil {
		fsys, root = r.opts.Examples, "."
	}
	if root == "" {
		return nil, nil
	}
	if info, err := fs.Lstat(fsys, root); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, nil
	}
	return r.read(fsys, root)
}

// read reads all files below root, except the files below the omitted folders.
func (r *folderReader) read(fsys fs.FS, root string, except ...string) ([]Document, error) {
	var docs []Document
	err := fs.WalkDir(fsys, root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return ErrUnreadableFile.New(err, "cannot read %q", name)
		case entry.IsDir() && (entry.Name() == ".git" || slices.Contains(except, name)):
			return fs.SkipDir
		}
		if entry.IsDir() {
			return nil
		}
		if reason := r.omit(entry, name); reason != "" {
			switch {
			case root == "." && strings.HasPrefix(path.Base(name), "crossplane."):
				r.omitted = append(r.omitted, fmt.Sprintf("%.100q %s", name, reason))
			case isYAML(name) && !entry.Type().IsRegular() && !r.ignored(name):
				// Its author takes it for a part of the package.
				f := &yamldoc.Fault{Code: ErrUnreadableFile, What: "it " + reason + ", and is not followed"}
				r.findings = append(r.findings, placed(f, name))
			}
			return nil
		}
		found, err := r.file(fsys, name)
		docs = append(docs, found...)
		return err
	})
	return docs, err
}

// omit returns the reason why a file is not part of the package, and "" if it is.
func (r *folderReader) omit(entry fs.DirEntry, name string) string {
	switch {
	case entry.Type()&fs.ModeSymlink != 0:
		return "is a symbolic link"
	case !entry.Type().IsRegular():
		return "is not a regular file"
	case !isYAML(name):
		return "does not have the extension .yaml or .yml"
	case r.ignored(name):
		return "is ignored"
	}
	return ""
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

func (r *folderReader) ignored(name string) bool {
	return slices.ContainsFunc(r.opts.Ignore, func(pattern string) bool {
		match, _ := path.Match(pattern, name) // the pattern was checked
		return match
	})
}

// file reads and splits one file. Problems become findings, except for limits.
func (r *folderReader) file(fsys fs.FS, name string) ([]Document, error) {
	text, err := r.bytesOf(fsys, name)
	if err != nil {
		return nil, err
	}
	docs, f := split(text, name, r.reader)
	switch {
	case f == nil:
		return docs, nil
	case f.Code.Class == errcode.Limit:
		return nil, refuse([]Finding{placed(f, name)}, "cannot read the folder of the package")
	}
	r.findings = append(r.findings, placed(f, name))
	return nil, nil
}

// bytesOf reads a file up to the remaining limit.
func (r *folderReader) bytesOf(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, ErrUnreadableFile.New(err, "cannot read %q", name)
	}
	defer f.Close()
	room := r.limits.StreamBytes - r.bytes
	text, err := io.ReadAll(io.LimitReader(f, int64(room)+1))
	if err != nil {
		return nil, ErrUnreadableFile.New(err, "cannot read %q", name)
	}
	if len(text) > room {
		f := &yamldoc.Fault{Code: ErrStreamTooLarge, What: r.limits.Exceeded(&r.limits.StreamBytes)}
		return nil, refuse([]Finding{placed(f, name)}, "cannot read the folder of the package")
	}
	r.bytes += len(text)
	return text, nil
}

// Stream returns the package.yaml of the folder. It contains each document as its author
// wrote it; splitting the stream returns each document byte for byte. Only the text
// between documents changes: a UTF-8 byte order mark at the start of a file is dropped, a
// missing line end at the end of a file is added, documents that only contain comments
// are omitted (older readers reject them), and one separator line separates two
// documents. CRLF line ends are kept.
func (f *Folder) Stream() []byte { return joinDocuments(f.Documents) }

// Examples returns the stream of the valid examples in the form of Stream; nil if there
// are none.
func (f *Folder) Examples() []byte { return joinDocuments(f.validExamples) }

const separator = "---\n"

func joinDocuments(docs []Document) []byte {
	size := 0
	for _, d := range docs {
		size += len(d.Raw) + len(separator)
	}
	if size == 0 {
		return nil
	}
	var b bytes.Buffer
	b.Grow(size)
	for i, d := range docs {
		// A document that starts with a marker line of its own needs no other.
		if first, _ := yamldoc.CutLine(d.Raw); i > 0 && !yamldoc.IsMarker(first, "---") {
			b.WriteString(separator)
		}
		b.Write(d.Raw)
	}
	return b.Bytes()
}
