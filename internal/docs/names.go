package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// metadataName is a label, an annotation or a finalizer that the program reads or writes.
type metadataName struct {
	kind, name, meaning string
}

// namePattern matches the names that belong to Crossplane and to xpkg.
var namePattern = regexp.MustCompile(`^(?:[a-z]+\.)*(?:xpkg\.dev|crossplane\.io)(?:/[a-z][a-z0-9.-]*)?$`)

// metadataKinds are the words of which the identifier of a constant contains one, in the order of the page.
var metadataKinds = []string{"annotation", "label", "finalizer"}

// metadataNames returns the labels, annotations and finalizers that are constants in the sources below root, ordered by
// kind and name. The meaning is the doc comment of the constant.
func metadataNames(root string) ([]metadataName, error) {
	var out []metadataName
	for _, folder := range []string{"apis", "internal", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && (d.Name() == "testdata" || d.Name() == "testing") {
				return fs.SkipDir
			}
			if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			out = append(out, namesIn(file)...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(out, func(a, b metadataName) int {
		return cmp.Or(
			slices.Index(metadataKinds, a.kind)-slices.Index(metadataKinds, b.kind), strings.Compare(a.name, b.name),
		)
	})
	return slices.CompactFunc(out, func(a, b metadataName) bool { return a.kind == b.kind && a.name == b.name }), nil
}

// namesIn returns the names in the constants of a file. A constant without a comment shares that of the one before it.
func namesIn(file *ast.File) []metadataName {
	var out []metadataName
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		comment := group.Doc.Text()
		values, specs := map[string]string{}, []metadataName{}
		for _, s := range group.Specs {
			constant := s.(*ast.ValueSpec)
			if constant.Doc != nil {
				comment = constant.Doc.Text()
			}
			identifier, kind, value := nameOf(constant)
			if kind != "" {
				values[identifier] = value
				specs = append(specs, metadataName{kind, value, comment})
			}
		}
		for i := range specs {
			specs[i].meaning = meaningOf(specs[i].meaning, specs[i].name, values)
		}
		out = append(out, specs...)
	}
	return out
}

// nameOf returns the identifier, the kind and the value of a constant. The kind is empty for all other constants.
func nameOf(constant *ast.ValueSpec) (identifier, kind, value string) {
	if len(constant.Values) != 1 {
		return "", "", ""
	}
	literal, ok := constant.Values[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", "", ""
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil || !namePattern.MatchString(value) {
		return "", "", ""
	}
	identifier = constant.Names[0].Name
	for _, k := range metadataKinds {
		if strings.Contains(strings.ToLower(identifier), k) && (k == "finalizer" || strings.Contains(value, "/")) {
			return identifier, k, value
		}
	}
	return "", "", ""
}

var (
	docLink    = regexp.MustCompile(`\[([A-Za-z.]+)\]`)
	identifier = regexp.MustCompile(`\b[a-zA-Z]\w*\b`)
	// clause matches the rest of a sentence that needs its subject.
	clause = regexp.MustCompile(`^(?:and|on|with|are|has) `)
)

// meaningOf returns a doc comment as the cell of a table: without the identifier at its start, and with values in the
// place of other identifiers.
func meaningOf(comment, name string, values map[string]string) string {
	text := strings.Join(strings.Fields(comment), " ")
	text = docLink.ReplaceAllString(text, "$1")
	text = identifier.ReplaceAllStringFunc(text, func(word string) string {
		if value, ok := values[word]; ok {
			return "`" + value + "`"
		}
		return word
	})
	if rest, ok := strings.CutPrefix(text, "`"+name+"` "); ok && !clause.MatchString(rest) {
		text = strings.TrimPrefix(rest, "is ")
	}
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// namesPage writes the labels, annotations and finalizers.
func namesPage(w io.Writer) error {
	root, err := repositoryRoot()
	if err != nil {
		return err
	}
	names, err := metadataNames(root)
	if err != nil {
		return err
	}
	fmt.Fprint(w, generated, "# Labels, annotations and finalizers\n\n",
		"xpkg reads or writes these. The content of a package cannot set names of the domain `xpkg.dev`; names of `meta.crossplane.io` and\n",
		"`meta.xpkg.dev` are written by authors of packages into their metadata.\n")
	kind := ""
	for _, n := range names {
		if n.kind != kind {
			kind = n.kind
			fmt.Fprintf(w, "\n## %ss\n\n| name | meaning |\n|---|---|\n", strings.ToUpper(kind[:1])+kind[1:])
		}
		fmt.Fprintf(w, "| `%s` | %s |\n", n.name, strings.ReplaceAll(n.meaning, "|", "\\|"))
	}
	return nil
}
