package main

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A label, an annotation and a finalizer of the domains are listed with their comments as sentences; other constants
// are not.
func TestNamesComeFromConstants(t *testing.T) {
	source := `package a

// Labels of pods.
const (
	// LabelOne and LabelTwo are on pods.
	LabelOne = "xpkg.dev/one"
	LabelTwo = "pkg.crossplane.io/two"
	// LabelSeven on a revision is its package.
	LabelSeven = "xpkg.dev/seven"
)

// annotationThree is the annotation of the Lock; see [Key].
const annotationThree = "xpkg.dev/three"

// FinalizerFour keeps a package.
const FinalizerFour = "four.pkg.crossplane.io"

// AnnotationForeign is not of these domains.
const AnnotationForeign = "example.org/five"

// fieldManager is none of them.
const fieldManager = "xpkg.dev/six"

// groupLabel has no slash.
const groupLabel = "pkg.crossplane.io"
`
	file, err := parser.ParseFile(token.NewFileSet(), "a.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	got := namesIn(file)
	if diff := cmp.Diff([]metadataName{
		{"label", "xpkg.dev/one", "`xpkg.dev/one` and `pkg.crossplane.io/two` are on pods."},
		{"label", "pkg.crossplane.io/two", "`xpkg.dev/one` and `pkg.crossplane.io/two` are on pods."},
		{"label", "xpkg.dev/seven", "`xpkg.dev/seven` on a revision is its package."},
		{"annotation", "xpkg.dev/three", "The annotation of the Lock; see Key."},
		{"finalizer", "four.pkg.crossplane.io", "Keeps a package."},
	}, got, cmp.AllowUnexported(metadataName{})); diff != "" {
		t.Error(diff)
	}
}

// Each name of the program has a meaning.
func TestEachNameHasAMeaning(t *testing.T) {
	names, err := metadataNames(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 40 {
		t.Errorf("%d names were found", len(names))
	}
	for _, n := range names {
		if len(n.meaning) < 10 {
			t.Errorf("the %s %s has the comment %q", n.kind, n.name, n.meaning)
		}
	}
}
