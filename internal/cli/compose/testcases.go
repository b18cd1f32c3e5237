package compose

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/author"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/composition/comptest"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

const (
	// testsFolder is the folder of the tests in the folder of a package; a Project can name another one.
	testsFolder = "tests"
	// expectedSuffix follows the name of a test in the name of the file with everything that it renders.
	expectedSuffix = ".expected.yaml"
)

// packageTests are the tests of a package.
type packageTests struct {
	*TestCmd
	// root is the folder of the package.
	root string
	// files are the files that can contain tests.
	files []string
}

// open finds the package and the files of the paths.
func (c *TestCmd) open() (*packageTests, error) {
	t := &packageTests{TestCmd: c}
	for _, p := range c.Paths {
		if !exists(p) {
			return nil, location.ErrReadFile.New(fs.ErrNotExist, "cannot read %s", p)
		}
		root, err := packageOf(p)
		if err != nil {
			return nil, err
		}
		if t.root != "" && t.root != root {
			return nil, terminal.ErrUsage.New(nil, "%s and %s belong to two packages, %s and %s", c.Paths[0], p, t.root, root).
				WithDo("Run the command once for each package.")
		}
		t.root = root
		if filepath.Clean(p) == root {
			if p, err = c.testsOf(root); err != nil {
				return nil, err
			}
		}
		files, err := testFiles(p)
		if err != nil {
			return nil, err
		}
		t.files = append(t.files, files...)
	}
	slices.Sort(t.files)
	t.files = slices.Compact(t.files)
	return t, nil
}

// packageOf returns the folder of the package that contains a file or a folder.
func packageOf(name string) (string, error) {
	at := filepath.Clean(name)
	for {
		if location.Metadata(at) != "" {
			return at, nil
		}
		parent := filepath.Dir(at)
		if at == "." || filepath.Base(at) == ".." {
			parent = filepath.Join("..", at)
		}
		above, err := os.Stat(parent)
		if err != nil {
			return "", err
		}
		if here, err := os.Stat(at); parent == at || err == nil && os.SameFile(here, above) {
			return "", xpkg.ErrNoMeta.New(nil, "%s is in no folder of a package", name).
				WithDo("Name the folder with the crossplane.yaml or the file of the Project.")
		}
		at = parent
	}
}

// testsOf returns the folder of the tests of a package.
func (c *TestCmd) testsOf(root string) (string, error) {
	p, _, err := c.Project(root, c.StreamLimits())
	if err != nil {
		return "", err
	}
	if p != nil {
		return filepath.Join(root, filepath.FromSlash(p.Paths.Tests)), nil
	}
	return filepath.Join(root, testsFolder), nil
}

// testFiles returns the files that can contain tests: a file, or those in a folder. A folder that does not exist has
// none.
func testFiles(name string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(name, func(at string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.Type().IsRegular() || strings.HasSuffix(at, expectedSuffix):
			return nil
		case at == name || author.IsYAMLFile(at) || otherLanguage(at) != "":
			out = append(out, at)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, location.ErrReadFile.New(err, "cannot read %s", name)
	}
	return out, nil
}

// otherLanguage returns the language of a file that generates tests for other tools, or "".
func otherLanguage(file string) string {
	switch base := path.Base(filepath.ToSlash(file)); {
	case base == "main.k":
		return "KCL"
	case base == "main.py":
		return "Python"
	case strings.HasSuffix(base, ".gotmpl"):
		return "Go templates"
	}
	return ""
}

// testCase is a test with the reason why it cannot run, or nil.
type testCase struct {
	comptest.Case
	failed error
}

// cases reads the tests in the files.
func (t *packageTests) cases(env *terminal.Env) ([]*testCase, error) {
	var out []*testCase
	names := map[string]bool{}
	for _, file := range t.files {
		shown := filepath.ToSlash(file)
		if language := otherLanguage(file); language != "" {
			out = append(out, &testCase{Case: comptest.Case{
				File: shown, Skipped: "xpkg reads tests in YAML, and this one is written in " + language,
			}})
			continue
		}
		found, err := t.read(env, file, shown)
		if env.Context.Err() != nil {
			return nil, env.Context.Err()
		}
		if err != nil {
			out = append(out, &testCase{comptest.Case{File: shown}, err})
			continue
		}
		for _, one := range found {
			c := &testCase{Case: one}
			if expected := expectedFile(one); one.Skipped == "" {
				if names[expected] {
					c.failed = comptest.ErrTestInvalid.New(nil, "another test in the same folder has the name %s", one.Name).
						WithDo("Give each test of a folder a name of its own.")
				}
				names[expected] = true
			}
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, comptest.ErrNoTests.New(nil, "%s: there is no test", strings.Join(t.Paths, ", "))
	}
	return out, nil
}

func (t *packageTests) read(env *terminal.Env, file, shown string) ([]comptest.Case, error) {
	text, err := env.ReadInput(file)
	if err != nil {
		return nil, location.ErrReadFile.New(err, "cannot read %s", file)
	}
	docs, err := xpkg.Split(text, shown, t.StreamLimits())
	if err != nil {
		return nil, err
	}
	var out []comptest.Case
	for _, doc := range docs {
		more, err := comptest.Read(doc)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// expectedFile returns the file with everything that a test renders.
func expectedFile(c comptest.Case) string {
	return filepath.Join(filepath.Dir(filepath.FromSlash(c.File)), c.Name+expectedSuffix)
}

// resultOf returns the outcome of a test that cannot run, or is skipped.
func (c *testCase) resultOf(err error) comptest.Result {
	r := comptest.Result{Name: c.Name, File: c.File}
	switch {
	case err != nil:
		e := errcode.From(err)
		r.Verdict, r.Code, r.Fix = comptest.Error, e.Code.Name, e.Do
		r.Message = strings.TrimPrefix(err.Error(), c.File+": ")
	case c.Skipped != "":
		r.Verdict, r.Message = comptest.Skipped, c.Skipped
	}
	return r
}

// writeExpected writes the file with everything that a test renders.
func (t *packageTests) writeExpected(env *terminal.Env, file string, text []byte) error {
	return fileutil.WriteFile(env.Context, file, fileutil.PublicMode, text)
}
