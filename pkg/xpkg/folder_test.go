package xpkg

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func files(of map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range of {
		out[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return out
}

func raws(docs []Document) (out []string) {
	for _, d := range docs {
		out = append(out, d.File+": "+string(d.Raw))
	}
	return out
}

func TestReadFolderFindsFiles(t *testing.T) {
	fsys := files(map[string]string{
		"a.yaml":               "a: 1\n---\na: 2\n",
		"z/crossplane.yaml":    meta(Provider),
		"b.yml":                "b: 1\n",
		"b.yaml.bak":           "no",
		"c.json":               "no",
		"empty.yaml":           "",
		"comment.yaml":         "# only\n",
		"crds/x.yaml":          "x: 1",
		"crds/ignored.yaml":    "no",
		"examples/e.yaml":      "e: 1\n---\n# none\n",
		"examples/sub/f.yaml":  "f: 1",
		"examples2/g.yaml":     "g: 1\n",
		".git/refs/x.yaml":     "no",
		"sub/examples/h.yaml":  "h: 1\n",
		"sub/notignored.yaml":  "i: 1\n",
		"sub/crds/ignored.yml": "j: 1\n",
	})
	f, err := ReadFolder(fsys, FolderOptions{ExamplesRoot: "examples/", Ignore: []string{"crds/ign*.yaml", "sub"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"z/crossplane.yaml: " + meta(Provider), "a.yaml: a: 1\n", "a.yaml: a: 2\n", "b.yml: b: 1\n", "crds/x.yaml: x: 1\n",
		"examples2/g.yaml: g: 1\n", "sub/crds/ignored.yml: j: 1\n", "sub/examples/h.yaml: h: 1\n",
		"sub/notignored.yaml: i: 1\n",
	}
	if diff := cmp.Diff(want, raws(f.Documents)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("e: 1\n---\nf: 1\n", string(f.Examples())); diff != "" {
		t.Error(diff)
	}
}

func TestExamplesElsewhere(t *testing.T) {
	inside := files(map[string]string{
		"crossplane.yaml": meta(Provider), "examples/a.yaml": object("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
	})
	f, err := ReadFolder(inside, FolderOptions{Examples: files(map[string]string{"x.yaml": "x: 1\n"})})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Documents) != 2 || string(f.Examples()) != "x: 1\n" {
		t.Errorf("documents %v, examples %q", raws(f.Documents), f.Examples())
	}
	f, err = ReadFolder(inside, FolderOptions{ExamplesRoot: "none"})
	if err != nil || f.Examples() != nil {
		t.Errorf("examples %q, %v", f.Examples(), err)
	}
}

func TestFolderStreamIsVerbatim(t *testing.T) {
	f, err := ReadFolder(files(map[string]string{
		"crossplane.yaml": "\xef\xbb\xbf" + meta(Provider),
		"a.yaml":          "# A license.\n---\n# Why.\napiVersion:   v1   # odd\r\nunknown: 'kept'\r\n",
		"b.yaml":          "--- # Source: chart\nb: |+\n  x\n\n\n---\nc: |\n  y",
	}), FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := meta(Provider) +
		"---\n# Why.\napiVersion:   v1   # odd\r\nunknown: 'kept'\r\n--- # Source: chart\nb: |+\n  x\n\n\n---\nc: |\n  y\n"
	if diff := cmp.Diff(want, string(f.Stream())); diff != "" {
		t.Error(diff)
	}
	splitsBack(t, f.Stream())
}

func TestFolderNamesTheAuthorsFiles(t *testing.T) {
	f, err := ReadFolder(files(map[string]string{
		"crossplane.yaml": meta(Provider),
		"a/b.yaml":        "x: 1\n---\n" + strings.TrimPrefix(object("v1", "Secret"), "---\n"),
		"c.yaml":          "\xff\xfea",
		"examples/d.yaml": "a: b: c\n",
	}), FolderOptions{ExamplesRoot: "examples"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Package(ReadOptions{Policy: PolicyBuild()})
	var got []string
	for _, x := range Findings(err) {
		got = append(got, x.Place()+" "+x.Code.Name)
	}
	want := []string{
		"a/b.yaml:1 NotAnObject", "a/b.yaml:3 UnknownKind", "c.yaml:1 InvalidEncoding", "examples/d.yaml:1 InvalidExample",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Examples are not installed, so those that are not valid are left out, and do not make the package unusable.
func TestInvalidExamplesAreLeftOut(t *testing.T) {
	f, err := ReadFolder(files(map[string]string{
		"crossplane.yaml":   meta(Provider),
		"examples/a.yaml":   "a: 1\n---\nb: 1\nb: 2\n---\nc: 1\n",
		"examples/b.yaml":   "\xff\xfea",
		"examples/c/d.yaml": "d: 1\n",
	}), FolderOptions{ExamplesRoot: "examples"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Package(ReadOptions{Policy: PolicyBuild()})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range p.Findings {
		got = append(got, x.Place()+" "+x.Code.Name+" "+x.Severity.String())
	}
	if diff := cmp.Diff(
		[]string{"examples/a.yaml:4 InvalidExample warning", "examples/b.yaml:1 InvalidExample warning"}, got,
	); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("a: 1\n---\nc: 1\n---\nd: 1\n", string(f.Examples())); diff != "" {
		t.Error(diff)
	}
	if _, err := f.Package(ReadOptions{Policy: PolicyBuild().Strict()}); len(errorsOf(Findings(err))) != 2 {
		t.Errorf("strict: %v", err)
	}
}

func TestUnreadableMetaIsNotMissingMeta(t *testing.T) {
	f, err := ReadFolder(files(map[string]string{"crossplane.yaml": "\xff\xfea"}), FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Package(ReadOptions{}); len(Findings(err)) != 1 {
		t.Errorf("got %v", Findings(err))
	}
}

// A missing metadata object is reported with the file that is likely meant to be it.
func TestMissingMetaNamesTheLikelyFile(t *testing.T) {
	const text = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: x}\n"
	for name, c := range map[string]struct {
		files fstest.MapFS
		opts  FolderOptions
		want  string
	}{
		"symbolic link": {
			fstest.MapFS{"crossplane.yaml": {Data: []byte("other"), Mode: fs.ModeSymlink}}, FolderOptions{},
			`"crossplane.yaml" is a symbolic link`,
		},
		"extension": {
			fstest.MapFS{"crossplane.json": {Data: []byte(text)}}, FolderOptions{},
			`"crossplane.json" does not have the extension .yaml or .yml`,
		},
		"ignored": {
			fstest.MapFS{"crossplane.yaml": {Data: []byte(text)}}, FolderOptions{Ignore: []string{"*.yaml"}},
			`"crossplane.yaml" is ignored`,
		},
		"another group": {
			fstest.MapFS{"crossplane.yaml": {Data: []byte(strings.Replace(text, "meta.", "", 1))}}, FolderOptions{},
			`the apiVersion is "pkg.crossplane.io/v1" instead of meta.pkg.crossplane.io/v1 in the Provider at crossplane.yaml:1`,
		},
		"nothing like it": {
			fstest.MapFS{"notes.txt": {Data: []byte(text)}}, FolderOptions{}, "no metadata object and no other document",
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder, err := ReadFolder(c.files, c.opts)
			if err != nil {
				t.Fatal(err)
			}
			_, err = folder.Package(ReadOptions{})
			if !slices.ContainsFunc(
				Findings(err), func(f Finding) bool { return f.Code.Name == "NoMeta" && strings.Contains(f.Text(), c.want) },
			) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestFolderErrors(t *testing.T) {
	if _, err := ReadFolder(
		os.DirFS(filepath.Join(t.TempDir(), "none")), FolderOptions{},
	); !errors.Is(err, ErrFolderNotFound) {
		t.Errorf("no folder: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFolder(os.DirFS(file), FolderOptions{}); !errors.Is(err, ErrFolderNotFound) {
		t.Errorf("a file: %v", err)
	}
	if _, err := ReadFolder(fstest.MapFS{}, FolderOptions{Ignore: []string{"["}}); !errors.Is(err, ErrInvalidIgnore) {
		t.Errorf("a pattern: %v", err)
	}
	two := files(map[string]string{"a.yaml": "a: 1\n", "b.yaml": "b: 1\n"})
	if _, err := ReadFolder(two, FolderOptions{Limits: Limits{StreamBytes: 8}}); !errors.Is(err, ErrStreamTooLarge) {
		t.Errorf("large files: %v", err)
	}
	if _, err := ReadFolder(two, FolderOptions{Limits: Limits{DocumentBytes: 3}}); !errors.Is(err, ErrYAMLLimit) {
		t.Errorf("large documents: %v", err)
	}
	if _, err := ReadFolder(broken{two}, FolderOptions{}); !errors.Is(err, ErrUnreadableFile) {
		t.Errorf("unreadable: %v", err)
	}
}

// broken is a file system whose files cannot be opened.
type broken struct{ fstest.MapFS }

func (b broken) Open(name string) (fs.File, error) {
	if isYAML(name) {
		return nil, errors.New("input/output error")
	}
	return b.MapFS.Open(name)
}

// hardening: L6
func TestLinksAreNotFollowed(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		filepath.Join(root, "crossplane.yaml"): meta(Provider), filepath.Join(outside, "secret.yaml"): "secret: 1\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"file.yaml": "secret.yaml", "folder": ".", "examples": "."} {
		if err := os.Symlink(filepath.Join(outside, target), filepath.Join(root, link)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "folder.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := ReadFolder(os.DirFS(root), FolderOptions{ExamplesRoot: "examples"})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Documents) != 1 || len(f.ExampleDocuments) != 0 {
		t.Errorf("got %v and %v", raws(f.Documents), raws(f.ExampleDocuments))
	}
	if len(f.findings) != 1 || f.findings[0].File != "file.yaml" || f.findings[0].Code.Name != ErrUnreadableFile.Name {
		t.Errorf("the link is not reported: %v", f.findings)
	}
}

func TestTestsAreNotPartOfThePackage(t *testing.T) {
	test := "apiVersion: meta.dev.upbound.io/v1alpha1\nkind: CompositionTest\nmetadata: {name: a}\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"test": {map[string]string{"a.yaml": "kind: A\n", "tests/a.yaml": test, "tests/x/xr.yaml": "kind: X\n"}, []string{
			"a.yaml: kind: A\n",
		}},
		"test elsewhere": {map[string]string{"other/a.yaml": test}, []string{"other/a.yaml: " + test}},
		"no test":        {map[string]string{"tests/xrd.yaml": "kind: X\n"}, []string{"tests/xrd.yaml: kind: X\n"}},
		"broken beside a test": {map[string]string{"a.yaml": "kind: A\n", "tests/a.yaml": test, "tests/b.yaml": "a: ]\n"}, []string{
			"a.yaml: kind: A\n",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			folder, err := ReadFolder(files(c.files), FolderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := raws(folder.Documents); !slices.Equal(got, c.want) || len(folder.findings) > 0 {
				t.Errorf("got %q and %v, want %q", got, folder.findings, c.want)
			}
		})
	}
}
