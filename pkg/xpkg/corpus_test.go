package xpkg_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/project"
)

// eachYAML calls do for each YAML file of the corpus.
func eachYAML(t *testing.T, do func(name string, text []byte)) {
	t.Helper()
	dir := corpus.Dir(t)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		do(name, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCorpusComesBack splits each file, puts the documents together again and
// splits that: not a byte of a document may change.
func TestCorpusComesBack(t *testing.T) {
	documents := 0
	eachYAML(t, func(name string, text []byte) {
		docs, err := xpkg.Split(text, name, xpkg.Limits{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		documents += len(docs)
		again, err := xpkg.Split((&xpkg.Folder{Documents: docs}).Stream(), name, xpkg.Limits{})
		if err != nil || len(again) != len(docs) {
			t.Errorf("%s: %d documents became %d: %v", name, len(docs), len(again), err)
			return
		}
		for i := range docs {
			if !bytes.Equal(docs[i].Raw, again[i].Raw) || !bytes.Contains(append(text, '\n'), docs[i].Raw) {
				t.Errorf("%s: document %d has changed", name, i+1)
			}
		}
	})
	if documents < 10_000 {
		t.Errorf("only %d documents in the corpus", documents)
	}
}

// TestCorpusMeansTheSame compares the JSON of each document with what
// sigs.k8s.io/yaml makes of it.
func TestCorpusMeansTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("reads half a gigabyte with the general library")
	}
	eachYAML(t, func(name string, text []byte) {
		docs, err := xpkg.Split(text, name, xpkg.Limits{})
		if err != nil {
			return // told by another test
		}
		for _, d := range docs {
			got, err := d.JSON()
			want, wantErr := yaml.YAMLToJSONStrict(d.Raw)
			if (err == nil) != (wantErr == nil) {
				t.Errorf("%s:%d: got the error %v, want %v", name, d.Line, err, wantErr)
				continue
			}
			if err == nil && !bytes.Equal(got, unescapeHTML(want)) {
				t.Errorf("%s:%d: the JSON differs", name, d.Line)
			}
		}
	})
}

// unescapeHTML converts the output of encoding/json to the canonical form. No text
// of the corpus has a backslash before such an escape.
func unescapeHTML(text []byte) []byte {
	return []byte(strings.NewReplacer(
		`\\`, `\\`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&", `\u2028`, "\u2028", `\u2029`, "\u2029",
	).Replace(string(text)))
}

// TestCorpusMetadata reads each crossplane.yaml of the corpus.
func TestCorpusMetadata(t *testing.T) {
	const chart = "edge/crossplane__crossplane-cli@f51c0bda33/cmd/pack/testdata/crossplane.yaml" // a Helm chart
	eachYAML(t, func(name string, text []byte) {
		if filepath.Base(name) != "crossplane.yaml" {
			return
		}
		pkg, err := xpkg.Read(text, xpkg.ReadOptions{})
		if name == chart {
			if !errors.Is(err, xpkg.ErrNoMeta) {
				t.Errorf("%s: %v", name, err)
			}
			return
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if pkg.Meta.Name == "" || pkg.Meta.Kind == "" {
			t.Errorf("%s: %+v", name, pkg.Meta)
		}
	})
}

// notPackages are files that lie beside packages in their repositories, which are
// built with --ignore.
var notPackages = []string{"auth.yaml", "kustomize/*"}

// packageFolders returns the folders of the corpus that are or resemble packages of
// the current format, with the code that refuses each, or "" for accepted ones.
func packageFolders(t *testing.T) map[string]string {
	t.Helper()
	dir := corpus.Dir(t)
	has := map[string]bool{}
	for _, area := range []string{"providers", "configurations", "functions"} {
		err := filepath.WalkDir(filepath.Join(dir, area), func(path string, entry fs.DirEntry, err error) error {
			if name := entry.Name(); name == "crossplane.yaml" || name == "upbound.yaml" {
				folder, _ := filepath.Rel(dir, filepath.Dir(path))
				has[folder] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	folders := map[string]string{}
	for folder := range has {
		folders[folder] = ""
	}
	// These are published in families, with metadata made from a template.
	for _, version := range []string{"v1.23.0", "v2.0.0", "v2.5.0", "v2.6.0"} {
		folders["providers/crossplane-contrib__provider-upjet-aws@"+version+"/package"] = "NoMeta"
	}
	return folders
}

// TestCorpusPackages builds each package of the corpus, and checks it like an API
// server. An accepted package is read again with the published content.
func TestCorpusPackages(t *testing.T) {
	if testing.Short() {
		t.Skip("checks half a gigabyte of definitions as an API server would")
	}
	dir := corpus.Dir(t)
	accepted, projects := 0, 0
	for name, code := range packageFolders(t) {
		t.Run(name, func(t *testing.T) {
			fsys := os.DirFS(filepath.Join(dir, name))
			opts := xpkg.FolderOptions{ExamplesRoot: "examples", Ignore: notPackages}
			file := project.Find(fsys, opts.Ignore)
			if file != "" {
				var err error
				if _, opts.Layout, err = project.Open(fsys, file, xpkg.Limits{}); err != nil {
					t.Fatal(err)
				}
			}
			folder, err := xpkg.ReadFolder(fsys, opts)
			if err != nil {
				t.Fatal(err)
			}
			got := corpusErrors(folder, xpkg.PolicyBuild())
			if code != "" {
				if !slices.Equal(got, []string{code}) {
					t.Errorf("got %v, want %s", got, code)
				}
				return
			}
			if len(got) > 0 {
				t.Fatalf("refused: %v", got)
			}
			accepted++
			if file != "" {
				projects++
			}
			published, err := xpkg.Read(folder.Stream(), xpkg.ReadOptions{})
			if err != nil {
				t.Fatalf("what is built is refused: %v", err)
			}
			if len(published.Objects)+1 != len(folder.Documents) {
				t.Errorf("%d documents became %d objects", len(folder.Documents), len(published.Objects))
			}
		})
	}
	if accepted < 180 {
		t.Errorf("only %d packages were accepted", accepted)
	}
	// The corpus has no functions of Projects.
	if projects < 21 {
		t.Errorf("only %d Projects were accepted", projects)
	}
}

// corpusErrors returns the codes of the errors of a folder without duplicates.
func corpusErrors(folder *xpkg.Folder, policy xpkg.Policy) []string {
	var codes []string
	for _, f := range check.Folder(folder, xpkg.ReadOptions{Policy: policy}, check.Options{
		Policy: policy, CRDs: crdvalidation.ValidateCRD,
	}) {
		if f.Severity == xpkg.Error && !slices.Contains(codes, f.Code.Name) {
			codes = append(codes, f.Code.Name)
		}
	}
	return codes
}
