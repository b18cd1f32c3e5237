//go:build unix

package cache

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	ociarchive "github.com/xpkg-dev/xpkg/pkg/oci/archive"
)

// The packages guide, "Pre-Populating the Package Cache", to the letter: the file
// mycoolpkg.xpkg is copied into the volume of the cache, and spec.package is
// mycoolpkg.
func TestPrePopulatedCache(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, Options{})
	_, err := c.Named(t.Context(), "mycoolpkg")
	wantCode(t, err, ErrNotInCache)
	want := writePackage(t, filepath.Join(dir, "mycoolpkg.xpkg"), "my-cool-pkg", 10)
	for _, name := range []string{"mycoolpkg", "mycoolpkg.xpkg", "mycoolpkg"} {
		if got, err := c.Named(t.Context(), name); got != want || err != nil {
			t.Errorf("%s is %s (%v), want %s", name, got, err, want)
		}
	}
	must(t, stream(t.Context(), c.Store(), want))
}

func TestNamedEndings(t *testing.T) {
	dir := t.TempDir()
	img := image(t, "pkg", 10)
	file := archive(t, img)
	must(t, os.WriteFile(filepath.Join(dir, "plain.xpkg"), file, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "gz.xpkg.gz"), gzipped(t, file), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "saved.tar"), file, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "v1.0.xpkg"), file, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "hidden-gz.xpkg"), gzipped(t, file), 0o600))
	must(t, os.Symlink("plain.xpkg", filepath.Join(dir, "link.xpkg")))
	for _, layout := range []string{"layout", "dotted.xpkg"} {
		_, err := oci.Copy(t.Context(), ociarchive.ToLayout(filepath.Join(dir, layout), "", oci.Limits{}), img)
		must(t, err)
	}
	for _, name := range []string{
		"plain", "plain.xpkg", "gz", "gz.xpkg.gz", "saved", "saved.tar", "v1.0", "v1.0.xpkg", "hidden-gz", "link", "layout",
		"dotted", "dotted.xpkg",
	} {
		c := open(t, dir, Options{})
		if got, err := c.Named(t.Context(), name); got != img.Digest() || err != nil {
			t.Errorf("%s is %s (%v)", name, got, err)
		}
		must(t, os.RemoveAll(filepath.Join(dir, storeDir, "blobs")))
		must(t, c.Close())
	}
}

// A file is read on the first lookup, again after it has changed, and again after its
// content was evicted.
func TestChangedFileIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, Options{})
	path := filepath.Join(dir, "pkg.xpkg")
	first := writePackage(t, path, "first", 10)
	named := func() oci.Digest {
		d, err := c.Named(t.Context(), "pkg")
		must(t, err)
		must(t, stream(t.Context(), c.Store(), d))
		return d
	}
	if got := named(); got != first {
		t.Errorf("got %s, want %s", got, first)
	}
	second := writePackage(t, path, "second", 20)
	if got := named(); got != second {
		t.Errorf("got %s after a change, want %s", got, second)
	}
	must(t, os.RemoveAll(filepath.Join(c.Store().Dir(), "blobs")))
	if got := named(); got != second {
		t.Errorf("got %s after an eviction, want %s", got, second)
	}
	must(t, os.Remove(path))
	_, err := c.Named(t.Context(), "pkg")
	wantCode(t, err, ErrNotInCache)
}

// Names that were given come before files, and outlive the process.
func TestNamedPrefersAdded(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	added := writePackage(t, filepath.Join(elsewhere, "whatever.xpkg"), "added", 10)
	writePackage(t, filepath.Join(dir, "pkg.xpkg"), "dropped", 10)
	const ref = "registry.example.com/acme/pkg:v1.0.0"
	c := open(t, dir, Options{})
	e, err := c.Add(t.Context(), filepath.Join(elsewhere, "whatever.xpkg"), "pkg", "Registry.Example.com/acme/pkg:v1.0.0")
	must(t, err)
	if e.Digest != added || e.Kind != "Configuration" || e.Package != "added" || len(e.Names) != 2 || e.Size == 0 {
		t.Errorf("added %+v", e)
	}
	must(t, c.Close())
	c = open(t, dir, Options{})
	for _, name := range []string{"pkg", ref, ref + "@" + added.String(), "registry.example.com/acme/other@" +
		added.String()} {
		if got, err := c.Named(t.Context(), name); got != added || err != nil {
			t.Errorf("%s is %s (%v), want %s", name, got, err, added)
		}
	}
	_, err = c.Named(t.Context(), "registry.example.com/acme/pkg:v1.0.1")
	wantCode(t, err, ErrNotInCache)
	if do := errcode.From(err).Do; !strings.Contains(do, ref) {
		t.Errorf("the advice does not name what is spelled alike: %s", do)
	}
}

func TestAddNames(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "hello.xpkg")
	d := writePackage(t, file, "hello", 10)
	c := open(t, dir, Options{})
	if e, err := c.Add(t.Context(), file); err != nil || e.Names[0] != "hello" {
		t.Errorf("%+v %v", e, err)
	}
	_, err := c.Add(t.Context(), file, "registry.example.com/acme/pkg@"+d.String())
	must(t, err)
	for _, bad := range []string{
		"", ".", "..", "a/b", "../../x", "a b", "-a", "acme/pkg:v1", "registry.example.com/acme/pkg", "x\x00",
		strings.Repeat("a", 300),
	} {
		_, err := c.Add(t.Context(), file, bad)
		wantCode(t, err, ErrCacheName)
		_, err = c.Named(t.Context(), bad)
		wantCode(t, err, ErrCacheName)
	}
	_, err = c.Add(t.Context(), file, "registry.example.com/acme/pkg@"+oci.DigestOf(nil).String())
	wantCode(t, err, ErrCacheName)
	_, err = c.Add(t.Context(), filepath.Join(dir, "missing.xpkg"))
	wantCode(t, err, ociarchive.ErrArchiveNotFound)
}

// A file that is not a package fails with a specific code and does not affect other
// files.
func TestSideloadedFileThatIsNotAPackage(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	writePackage(t, filepath.Join(outside, "secret.xpkg"), "secret", 10)
	t.Setenv(podVariable, "10.0.0.1") // The volume of a pod is writable by all users.
	must(t, os.Chmod(dir, 0o777))
	whole := archive(t, image(t, "half", 1000))
	must(t, os.WriteFile(filepath.Join(dir, "text.xpkg"), []byte("hello"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "half.xpkg"), whole[:len(whole)/2], 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "half-gz.xpkg.gz"), gzipped(t, whole)[:len(whole)/4], 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "noending"), whole, 0o600))
	must(t, os.Symlink(filepath.Join(outside, "secret.xpkg"), filepath.Join(dir, "escape.xpkg")))
	must(t, os.Symlink("../../../../../../etc", filepath.Join(dir, "etc")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe.xpkg"), 0o600))
	must(t, os.MkdirAll(filepath.Join(dir, "empty"), 0o700))
	must(t, os.MkdirAll(filepath.Join(dir, "pipes"), 0o700))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipes", "index.json"), 0o600))
	good := writePackage(t, filepath.Join(dir, "good.xpkg"), "good", 10)
	c := open(t, dir, Options{})
	for name, code := range map[string]errcode.Code{
		"text": ociarchive.ErrNotAnArchive, "half": oci.ErrBrokenLayer, "half-gz": ociarchive.ErrNotAnArchive,
		"noending": ErrNotInCache, "escape": ociarchive.ErrNotAnArchive,
		"etc": ErrNotInCache, "pipe": ociarchive.ErrNotAnArchive, "empty": ociarchive.ErrNotAnArchive,
		"pipes": ociarchive.ErrNotAnArchive, storeDir: ErrNotInCache,
	} {
		if _, err := c.Named(t.Context(), name); !errors.Is(err, code) {
			t.Errorf("%s: got %v, want %s", name, err, code.Name)
		}
	}
	if got, err := c.Named(t.Context(), "good"); got != good || err != nil {
		t.Errorf("good is %s (%v)", got, err)
	}
	all, err := c.List(t.Context())
	must(t, err)
	problems := 0
	for _, e := range all {
		if e.Problem != "" {
			problems++
		}
	}
	if all[0].Digest != good || problems < 4 {
		t.Errorf("the list is %+v", all)
	}
}

// For any manifest, Named opens no file outside of the cache and does not panic.
func FuzzNamed(f *testing.F) {
	outside := f.TempDir()
	dir := filepath.Join(outside, "cache")
	c, err := Open(dir, Options{})
	must(f, err)
	f.Cleanup(func() { _ = c.Close() })
	writePackage(f, filepath.Join(outside, "secret.xpkg"), "secret", 10)
	writePackage(f, filepath.Join(dir, "inside.xpkg"), "inside", 10)
	for _, s := range []string{
		"inside", "inside.xpkg", "../secret", "..", "/etc/passwd", "store", "a/../b", "inside\x00",
		"registry.example.com/a/b:v1", "a@sha256:", "%2e%2e/secret", `..\secret`, "INSIDE",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		d, err := c.Named(t.Context(), name)
		if err == nil && name != "inside" && name != "inside.xpkg" && !strings.HasSuffix(name, "@"+d.String()) {
			t.Fatalf("%q is %s", name, d)
		}
		key, _, err := canonical(name)
		if err != nil {
			return
		}
		if again, _, err := canonical(key); again != key || err != nil {
			t.Fatalf("the canonical form of %q is %q, and of that %q (%v)", name, key, again, err)
		}
	})
}
