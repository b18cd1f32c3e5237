package validation_test

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/internal/validation"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/version"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/project"
)

// corpusPackages finds the packages of the corpus by their references.
type corpusPackages struct {
	t    *testing.T
	dir  string
	read map[string]*xpkg.Package
}

// folder reads the package in a folder of the corpus.
func (c *corpusPackages) folder(name string) *xpkg.Folder {
	fsys := os.DirFS(filepath.Join(c.dir, name))
	opts := xpkg.FolderOptions{ExamplesRoot: "examples", Ignore: []string{"auth.yaml", "kustomize/*"}}
	if file := project.Find(fsys, opts.Ignore); file != "" {
		p, layout, err := project.Open(fsys, file, xpkg.Limits{})
		if err != nil {
			c.t.Fatal(err)
		}
		if opts.Layout = layout; p != nil {
			opts.ExamplesRoot = p.Paths.Examples
		}
	}
	folder, err := xpkg.ReadFolder(fsys, opts)
	if err != nil {
		c.t.Fatal(err)
	}
	return folder
}

// version returns the package of a repository in the newest version that the constraint accepts, and nil if the corpus
// has none.
func (c *corpusPackages) version(repository, constraint string) *xpkg.Package {
	owner, base := path.Split(repository)
	var patterns []string
	for _, o := range []string{path.Base(owner), "crossplane-contrib", "upbound"} {
		for _, area := range []string{"providers", "functions", "configurations"} {
			patterns = append(patterns, area+"/"+o+"__"+base+"@*")
		}
	}
	patterns = append(patterns, "families/*@*/"+base)
	var found []string
	for _, p := range patterns {
		matches, err := filepath.Glob(filepath.Join(c.dir, p))
		if err != nil {
			c.t.Fatal(err)
		}
		found = append(found, matches...)
	}
	tags := map[string]string{}
	var all []string
	for _, dir := range found {
		_, tag, _ := strings.Cut(strings.TrimPrefix(dir, c.dir), "@")
		tag, _, _ = strings.Cut(tag, "/")
		if tags[tag] == "" {
			tags[tag], all = dir, append(all, tag)
		}
	}
	accepted := version.ParseConstraint(constraint).Filter(all)
	if len(accepted) == 0 {
		return nil
	}
	dir := tags[accepted[0]]
	if info, err := os.Stat(filepath.Join(dir, "package")); err == nil && info.IsDir() {
		dir = filepath.Join(dir, "package")
	}
	if c.read[dir] == nil {
		name, err := filepath.Rel(c.dir, dir)
		if err != nil {
			c.t.Fatal(err)
		}
		c.read[dir], _ = c.folder(name).Inspect(xpkg.ReadOptions{})
	}
	return c.read[dir]
}

// add adds the dependencies of a package, as far as the corpus has them.
func (c *corpusPackages) add(v *validation.Validation, dependencies []dependency.Dependency, seen map[string]bool) {
	var more []dependency.Dependency
	for _, d := range dependencies {
		ref, err := oci.ParseReference(d.Package, oci.ParseOptions{AllowUntagged: true})
		if err != nil || seen[d.Package] {
			continue
		}
		seen[d.Package] = true
		p := c.version(ref.Repository, d.Constraint)
		switch {
		case p == nil && d.Kind == string(xpkg.Function):
			v.AddFunction(false, oci.ToDNSLabel(ref.Repository), path.Base(ref.Repository))
		case p == nil:
			v.Kinds, v.AnyFunction = validation.Partial, v.AnyFunction || d.Kind != string(xpkg.Provider)
		default:
			if p.Meta.Kind == xpkg.Function {
				v.AddFunction(validation.DefinesInputs(p), oci.ToDNSLabel(ref.Repository),
					validation.FunctionNames(p.Meta.Name, ref.Repository)...)
			}
			v.AddPackage(p, d.Package)
			more = append(more, p.Meta.Dependencies()...)
		}
	}
	if len(more) > 0 {
		c.add(v, more, seen)
	}
}

// TestCorpusHasNoFalseErrors checks the Configurations of the corpus with those of their dependencies that the corpus
// contains.
func TestCorpusHasNoFalseErrors(t *testing.T) {
	c := &corpusPackages{t: t, dir: corpus.Dir(t), read: map[string]*xpkg.Package{}}
	roots := map[string]bool{}
	for _, file := range []string{"crossplane.yaml", "upbound.yaml"} {
		for _, depth := range []string{"*", "*/*", "*/*/*", "*/*/*/*"} {
			matches, err := filepath.Glob(filepath.Join(c.dir, "configurations", depth, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range matches {
				rel, err := filepath.Rel(c.dir, filepath.Dir(m))
				if err != nil {
					t.Fatal(err)
				}
				roots[rel] = true
			}
		}
	}
	var got []string
	warnings := 0
	for root := range roots {
		for _, f := range c.check(root) {
			if f.Severity != xpkg.Error {
				warnings++
				continue
			}
			f.File = strings.TrimPrefix(root, "configurations/") + "/" + f.File
			got = append(got, f.Place()+" "+f.Code.Name)
		}
	}
	slices.Sort(got)
	want := []string{
		// The XNetwork of this package has no tags, so that no cache with tags gets one.
		"upbound__configuration-aws-elasticache@v0.1.0/apis/composition.yaml:35 InvalidPatch",
		// The API version of the XR lacks the slash.
		"upbound__configuration-dummy@f9921f58e5/apis/composition.yaml:9 KindWithoutSchema",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got the errors\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(roots) < 100 || warnings < 400 {
		t.Errorf("only %d packages with %d warnings", len(roots), warnings)
	}
}

// check checks a Configuration and its examples.
func (c *corpusPackages) check(root string) []xpkg.Finding {
	v, err := validation.New()
	if err != nil {
		c.t.Fatal(err)
	}
	v.Kinds = validation.Open
	folder := c.folder(root)
	pkg, _ := folder.Inspect(xpkg.ReadOptions{})
	v.AddPackage(pkg, root)
	c.add(v, pkg.Meta.Dependencies(), map[string]bool{})
	// The corpus has no functions of Projects.
	v.AnyFunction = v.AnyFunction || project.Find(os.DirFS(filepath.Join(c.dir, root)), nil) != ""
	for _, r := range v.Read(slices.Concat(folder.Documents, folder.ExampleDocuments)) {
		v.Validate(c.t.Context(), r)
	}
	if err := v.Schemas.Err(); err != nil {
		c.t.Errorf("%s: %v", root, err)
	}
	return v.Findings
}
