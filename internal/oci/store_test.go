package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

func put(t *testing.T, s *Store, data string) Digest {
	t.Helper()
	d, err := s.PutBytes(t.Context(), []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// filesUnder lists the regular files of a store's folder.
func filesUnder(t *testing.T, s *Store, folder string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(filepath.Join(s.dir, folder), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestStoreKeepsContent(t *testing.T) {
	s := newStore(t)
	d := put(t, s, "hello")
	if !s.Has(d) || s.Has(DigestOf(nil)) {
		t.Error("Has is wrong")
	}
	got, err := s.Get(t.Context(), d, 10)
	if err != nil || string(got) != "hello" {
		t.Errorf("%q %v", got, err)
	}
	r, err := s.Open(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if data, err := io.ReadAll(r); err != nil || string(data) != "hello" {
		t.Errorf("%q %v", data, err)
	}
	_, err = s.Get(t.Context(), d, 4)
	wantCode(t, err, ErrManifestTooLarge)
	_, err = s.Open(t.Context(), DigestOf(nil))
	wantCode(t, err, ErrBlobNotFound)
	_, err = s.Get(t.Context(), Digest{}, 10)
	wantCode(t, err, ErrBlobNotFound)
}

func TestB01StoreRefusesOtherContent(t *testing.T) {
	want := DigestOf([]byte("hello"))
	cause := errors.New("cable pulled")
	tests := map[string]struct {
		size int64
		r    io.Reader
		want failure.Code
	}{
		"SameLength": {5, strings.NewReader("hellO"), ErrDigestMismatch},
		"Shorter":    {5, strings.NewReader("hell"), ErrSizeMismatch},
		"Longer":     {5, strings.NewReader("hello!"), ErrSizeMismatch},
		"WrongSize":  {4, strings.NewReader("hello"), ErrSizeMismatch},
		"Empty":      {5, strings.NewReader(""), ErrSizeMismatch},
		"NoSize":     {0, strings.NewReader("hello"), ErrSizeMismatch},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			wantCode(t, s.Put(t.Context(), want, tc.size, tc.r), tc.want)
			if s.Has(want) || len(filesUnder(t, s, tempDir)) != 0 {
				t.Error("something is left behind")
			}
		})
	}
	t.Run("ReaderFails", func(t *testing.T) {
		s := newStore(t)
		err := s.Put(t.Context(), want, 5, io.MultiReader(strings.NewReader("hel"), failingReader{cause}))
		if !errors.Is(err, cause) || ErrStoreWrite.Is(err) {
			t.Errorf("%v", err)
		}
	})
	t.Run("Cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s := newStore(t)
		if err := s.Put(ctx, want, 5, strings.NewReader("hello")); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

func TestK01WriteErrors(t *testing.T) {
	s := newStore(t)
	kept := put(t, s, "kept")
	// A file where the folder should be is an error that root gets too.
	if err := os.RemoveAll(filepath.Join(s.dir, tempDir)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, tempDir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := s.PutBytes(t.Context(), []byte("new"))
	wantCode(t, err, ErrStoreWrite)
	if s.Has(DigestOf([]byte("new"))) {
		t.Error("the entry is there")
	}
	if _, err := s.Get(t.Context(), kept, 10); err != nil {
		t.Errorf("what was there before: %v", err)
	}
}

func TestK02DamagedEntry(t *testing.T) {
	damages := map[string]func(path string) error{
		"Truncated": func(path string) error { return os.Truncate(path, 3) },
		"Emptied":   func(path string) error { return os.Truncate(path, 0) },
		"Flipped":   func(path string) error { return os.WriteFile(path, []byte("hellO"), 0o600) },
		"Extended":  func(path string) error { return os.WriteFile(path, []byte("hello!"), 0o600) },
	}
	for name, damage := range damages {
		for how, read := range map[string]func(*Store, Digest) error{
			"Open": func(s *Store, d Digest) error { _, err := s.Open(t.Context(), d); return err },
			"Get":  func(s *Store, d Digest) error { _, err := s.Get(t.Context(), d, 100); return err },
		} {
			t.Run(name+how, func(t *testing.T) {
				s := newStore(t)
				d := put(t, s, "hello")
				if err := damage(s.blobPath(d)); err != nil {
					t.Fatal(err)
				}
				wantCode(t, read(s, d), ErrDigestMismatch)
				if s.Has(d) || len(filesUnder(t, s, quarantineDir)) != 1 {
					t.Error("the entry was not put aside")
				}
				put(t, s, "hello")
				if err := read(s, d); err != nil {
					t.Errorf("after it was put again: %v", err)
				}
			})
		}
	}
}

func TestK02DamagedBlobIsFetchedAgain(t *testing.T) {
	f := newFakeRegistry(t)
	img := buildHello(t)
	ref := f.publish(t, img, "v1")
	r, s := testRemote(t, nil), newStore(t)
	if _, _, err := fetchYAML(t.Context(), r, s, ref); err != nil {
		t.Fatal(err)
	}
	for _, d := range []Digest{img.Digest(), img.manifest.Layers[0].Digest} {
		if err := os.Truncate(s.blobPath(d), 10); err != nil {
			t.Fatal(err)
		}
		if _, _, err := fetchYAML(t.Context(), r, s, ref); err != nil {
			t.Errorf("after %s was damaged: %v", d.Short(), err)
		}
	}
}

func TestK03SharedStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	stores := make([]*Store, 4)
	for i := range stores {
		s, err := OpenStore(dir, StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		stores[i] = s
	}
	var all sync.WaitGroup
	for i, s := range stores {
		all.Go(func() {
			for n := range 50 {
				data := fmt.Appendf(nil, "blob %d", (n+i)%10)
				d, err := s.PutBytes(t.Context(), data)
				if err != nil {
					t.Error(err)
				}
				if got, err := s.Get(t.Context(), d, 100); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%q %v", got, err)
				}
			}
		})
	}
	all.Wait()
}

// A store that opens while another has an entry in the making leaves it alone.
func TestK03OpenDoesNotDisturb(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	first, err := OpenStore(dir, StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	in, out := io.Pipe()
	done := make(chan error)
	go func() { done <- first.Put(t.Context(), DigestOf([]byte("hello")), 5, in) }()
	if _, err := out.Write([]byte("hel")); err != nil {
		t.Fatal(err)
	}
	second, err := OpenStore(dir, StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if _, err := out.Write([]byte("lo")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(out.Close(), <-done); err != nil {
		t.Fatal(err)
	}
	if !second.Has(DigestOf([]byte("hello"))) {
		t.Error("the other store does not see it")
	}
}

func TestK04UnsafeDirectory(t *testing.T) {
	tests := map[string]func(t *testing.T, dir string){
		"SymbolicLink": func(t *testing.T, dir string) {
			target := t.TempDir()
			if err := os.Symlink(target, dir); err != nil {
				t.Fatal(err)
			}
		},
		"WorldWritable": func(t *testing.T, dir string) { mkdir(t, dir, 0o777) },
		"GroupWritable": func(t *testing.T, dir string) { mkdir(t, dir, 0o770) },
		"OtherUser": func(t *testing.T, dir string) {
			mkdir(t, dir, 0o700)
			if err := os.Chown(dir, 12345, 12345); err != nil {
				t.Skipf("only root can give files away: %v", err)
			}
		},
		"OtherFiles": func(t *testing.T, dir string) {
			mkdir(t, dir, 0o700)
			if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"OtherFilesInAFolderOfThatName": func(t *testing.T, dir string) {
			mkdir(t, dir, 0o700)
			mkdir(t, filepath.Join(dir, tempDir), 0o700)
			if err := os.WriteFile(filepath.Join(dir, tempDir, "thesis.txt"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"FormatIsALink": func(t *testing.T, dir string) {
			mkdir(t, dir, 0o700)
			if err := os.Symlink("/etc/hostname", filepath.Join(dir, formatFile)); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			prepare(t, dir)
			_, err := OpenStore(dir, StoreOptions{})
			wantCode(t, err, ErrUnsafeStore)
		})
	}
	t.Run("File", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "store")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := OpenStore(file, StoreOptions{})
		wantCode(t, err, ErrStoreWrite)
	})
}

func mkdir(t *testing.T, dir string, mode os.FileMode) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, mode); err != nil { // Mkdir has the umask taken off.
		t.Fatal(err)
	}
}

func TestK04PlantedLink(t *testing.T) {
	s := newStore(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := DigestOf([]byte("secret"))
	if err := os.MkdirAll(filepath.Dir(s.blobPath(d)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, s.blobPath(d)); err != nil {
		t.Fatal(err)
	}
	if s.Has(d) {
		t.Error("the link counts as an entry")
	}
	_, err := s.Open(t.Context(), d)
	wantCode(t, err, ErrBlobNotFound)
	put(t, s, "secret")
	if info, err := os.Lstat(s.blobPath(d)); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

func TestK06OtherFormat(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := OpenStore(dir, StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := put(t, s, "hello")
	if err := os.WriteFile(filepath.Join(dir, formatFile), []byte("xpkg store 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = OpenStore(dir, StoreOptions{})
	wantCode(t, err, ErrStoreInUse)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = OpenStore(dir, StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Has(d) {
		t.Error("content of another format is still there")
	}
	put(t, s, "hello")
}

func TestK06DerivedVersion(t *testing.T) {
	s := newStore(t)
	key := DerivedKey{Digest: DigestOf([]byte("blob")), Name: "index", Version: 1}
	_, err := s.GetDerived(t.Context(), key)
	wantCode(t, err, ErrBlobNotFound)
	if err := s.PutDerived(t.Context(), key, []byte("value")); err != nil {
		t.Fatal(err)
	}
	if got, err := s.GetDerived(t.Context(), key); err != nil || string(got) != "value" {
		t.Errorf("%q %v", got, err)
	}
	newer := key
	newer.Version++
	_, err = s.GetDerived(t.Context(), newer)
	wantCode(t, err, ErrBlobNotFound)
}

func TestOpenDerived(t *testing.T) {
	s := newStore(t)
	key := DerivedKey{Digest: DigestOf([]byte("blob")), Name: "objects", Version: 1}
	_, err := s.OpenDerived(t.Context(), key)
	wantCode(t, err, ErrBlobNotFound)
	must(t, s.PutDerived(t.Context(), key, []byte("a value of some length")))
	d, err := s.OpenDerived(t.Context(), key)
	must(t, err)
	defer d.Close()
	must(t, os.Remove(s.derivedPath(key)))
	part := make([]byte, 5)
	if n, err := d.ReadAt(part, 2); err != nil || string(part[:n]) != "value" || d.Size() != 22 {
		t.Errorf("read %q of %d bytes: %v", part[:n], d.Size(), err)
	}
	if n, err := d.ReadAt(part, 20); n != 2 || err != io.EOF {
		t.Errorf("read %d bytes at the end: %v", n, err)
	}
}

func TestK02DamagedDerived(t *testing.T) {
	key := DerivedKey{Digest: DigestOf([]byte("blob")), Name: "index", Version: 1}
	other := DerivedKey{Digest: DigestOf([]byte("other")), Name: "index", Version: 1}
	tests := map[string]func(t *testing.T, s *Store){
		"Truncated": func(t *testing.T, s *Store) { must(t, os.Truncate(s.derivedPath(key), 34)) },
		"Short":     func(t *testing.T, s *Store) { must(t, os.Truncate(s.derivedPath(key), 3)) },
		"Exchanged": func(t *testing.T, s *Store) {
			must(t, s.PutDerived(t.Context(), other, []byte("other value")))
			must(t, os.Rename(s.derivedPath(other), s.derivedPath(key)))
		},
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			must(t, s.PutDerived(t.Context(), key, []byte("value")))
			damage(t, s)
			_, err := s.GetDerived(t.Context(), key)
			wantCode(t, err, ErrDigestMismatch)
			_, err = s.GetDerived(t.Context(), key)
			wantCode(t, err, ErrBlobNotFound)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestStoreRecordsUse(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s, err := OpenStore(filepath.Join(t.TempDir(), "store"), StoreOptions{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := put(t, s, "hello")
	if _, err := s.Get(t.Context(), d, 10); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(s.blobPath(d))
	if err != nil || !info.ModTime().Equal(now) {
		t.Errorf("%v %v", info.ModTime(), err)
	}
}
