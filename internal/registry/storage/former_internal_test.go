package storage

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAFolderOfAFormerRelease opens a folder that a former release has written with olareg, collects its garbage, and
// changes it. The folder has tags of one manifest, a tag that was moved, a deleted tag, referrers with a tag and
// without one, and an index in an index.
func TestAFolderOfAFormerRelease(t *testing.T) {
	t.Parallel()
	c := newContent(t)
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS(filepath.Join("testdata", "former"))); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, filepath.FromSlash(testRepository))
	old := time.Now().Add(-48 * time.Hour)
	blobs, err := os.ReadDir(filepath.Join(dir, "blobs", "sha256"))
	if err != nil {
		t.Fatal(err)
	}
	for _, blob := range blobs {
		if err := os.Chtimes(filepath.Join(dir, "blobs", "sha256", blob.Name()), old, old); err != nil {
			t.Fatal(err)
		}
	}
	s := Open(root, Options{Volatile: true, Grace: time.Hour})
	defer func() { _ = s.Close() }()
	check := func(when string, tags map[string]string, referrers ...string) {
		t.Helper()
		found, _, err := s.Tags(testRepository)
		want := map[string]Digest{}
		for tag, name := range tags {
			want[tag] = c.digest(name)
		}
		if err != nil || !maps.Equal(found, want) {
			t.Errorf("%s: the tags are %v, want %v: %v", when, found, want, err)
		}
		of, err := s.Referrers(testRepository, c.digest("a"))
		if err != nil || len(of) != len(referrers) {
			t.Fatalf("%s: the referrers are %v, %v", when, of, err)
		}
		for i, name := range referrers {
			if of[i].Digest != c.digest(name) {
				t.Errorf("%s: the referrer %d is %s, want %s", when, i, of[i].Digest, name)
			}
		}
		for name := range c.manifests {
			if content, err := s.Manifest(testRepository, string(c.digest(name))); err != nil {
				t.Errorf("%s: %s: %v", when, name, err)
			} else if err := content.Close(); err != nil {
				t.Error(err)
			}
		}
		for name := range c.blobs {
			if has, err := s.has(testRepository, c.digest(name)); err != nil || !has {
				t.Errorf("%s: %s: %t, %v", when, name, has, err)
			}
		}
	}
	tags := map[string]string{"v2": "a", "v5": "a", "status": "status", "v3": "index", "v4": "nested"}
	check("after the start", tags, "signature", "status")
	s.Collect(t.Context())
	check("after a collection", tags, "signature", "status")
	if err := c.put(s, "signature", "v6"); err != nil {
		t.Fatal(err)
	}
	tags["v6"] = "signature"
	check("after a push", tags, "status", "signature")
}
