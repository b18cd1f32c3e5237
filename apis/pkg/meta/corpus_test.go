// Package meta_test checks the metadata types of all versions against real packages.
package meta_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/apis"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
)

// TestCorpus reads every metadata document of the corpus into its Go type and
// refuses fields that the type does not have.
func TestCorpus(t *testing.T) {
	s := runtime.NewScheme()
	if err := apis.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	read := map[schema.GroupVersionKind]int{}
	for name, doc := range documents(t, corpus.Dir(t)) {
		var head struct{ APIVersion, Kind string }
		if yaml.Unmarshal(doc, &head) != nil || !strings.HasPrefix(head.APIVersion, "meta.pkg.crossplane.io/") {
			continue
		}
		gvk := schema.FromAPIVersionAndKind(head.APIVersion, head.Kind)
		object, err := s.New(gvk)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := yaml.UnmarshalStrict(doc, object); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		read[gvk]++
	}
	if len(read) != 6 {
		t.Errorf("read these kinds, want 6 of them: %v", read)
	}
	t.Logf("read %v", read)
}

// The names of files in which the corpus has metadata. The others, which are
// most, are left unread.
var interesting = regexp.MustCompile(`^crossplane[.]yaml$|_(crossplane|meta|package)[_a-z0-9]*[.]yaml$`)

// documents returns every document of every interesting file under the folder.
func documents(t *testing.T, dir string) func(func(string, []byte) bool) {
	return func(yield func(string, []byte) bool) {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !interesting.MatchString(e.Name()) {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(b)))
			for {
				doc, err := docs.Read()
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				if !yield(path, doc) {
					return fs.SkipAll
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
