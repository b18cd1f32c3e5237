package store

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

	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

func put(t *testing.T, s *Store, data string) oci.Digest {
	t.Helper()
	d, err := s.PutBytes(t.Context(), []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestStoreKeepsContent(t *testing.T) {
	s := newStore(t)
	d := put(t, s, "hello")
	if !s.Has(d) || s.Has(oci.DigestOf(nil)) {
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
	ocitest.WantCode(t, err, oci.ErrManifestTooLarge)
	_, err = s.Open(t.Context(), oci.DigestOf(nil))
	ocitest.WantCode(t, err, oci.ErrBlobNotFound)
	_, err = s.Get(t.Context(), oci.Digest{}, 10)
	ocitest.WantCode(t, err, oci.ErrBlobNotFound)
}

// hardening: B1
func TestPutRefusesOtherContent(t *testing.T) {
	want := oci.DigestOf([]byte("hello"))
	cause := errors.New("cable pulled")
	tests := map[string]struct {
		size int64
		r    io.Reader
		want errcode.Code
	}{
		"SameLength": {5, strings.NewReader("hellO"), oci.ErrDigestMismatch},
		"Shorter":    {5, strings.NewReader("hell"), oci.ErrSizeMismatch},
		"Longer":     {5, strings.NewReader("hello!"), oci.ErrSizeMismatch},
		"WrongSize":  {4, strings.NewReader("hello"), oci.ErrSizeMismatch},
		"Empty":      {5, strings.NewReader(""), oci.ErrSizeMismatch},
		"NoSize":     {0, strings.NewReader("hello"), oci.ErrSizeMismatch},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			ocitest.WantCode(t, s.Put(t.Context(), want, tc.size, tc.r), tc.want)
			if s.Has(want) || len(ocitest.FilesUnder(t, s.Dir(), tempDir)) != 0 {
				t.Error("something is left behind")
			}
		})
	}
	t.Run("ReaderFails", func(t *testing.T) {
		s := newStore(t)
		err := s.Put(t.Context(), want, 5, io.MultiReader(strings.NewReader("hel"), failingReader{cause}))
		if !errors.Is(err, cause) || errors.Is(err, ErrStoreWrite) {
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

// hardening: K1
func TestWriteErrorKeepsExistingContent(t *testing.T) {
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
	ocitest.WantCode(t, err, ErrStoreWrite)
	if s.Has(oci.DigestOf([]byte("new"))) {
		t.Error("the entry is there")
	}
	if _, err := s.Get(t.Context(), kept, 10); err != nil {
		t.Errorf("what was there before: %v", err)
	}
}

// hardening: K2
func TestDamagedEntryIsNotRead(t *testing.T) {
	damages := map[string]func(path string) error{
		"Truncated": func(path string) error { return os.Truncate(path, 3) },
		"Emptied":   func(path string) error { return os.Truncate(path, 0) },
		"Flipped":   func(path string) error { return os.WriteFile(path, []byte("hellO"), 0o600) },
		"Extended":  func(path string) error { return os.WriteFile(path, []byte("hello!"), 0o600) },
	}
	for name, damage := range damages {
		for how, read := range map[string]func(*Store, oci.Digest) error{
			"Open": func(s *Store, d oci.Digest) error { _, err := s.Open(t.Context(), d); return err },
			"Get":  func(s *Store, d oci.Digest) error { _, err := s.Get(t.Context(), d, 100); return err },
		} {
			t.Run(name+how, func(t *testing.T) {
				s := newStore(t)
				d := put(t, s, "hello")
				if err := damage(s.blobPath(d)); err != nil {
					t.Fatal(err)
				}
				ocitest.WantCode(t, read(s, d), oci.ErrDigestMismatch)
				if s.Has(d) || len(ocitest.FilesUnder(t, s.Dir(), quarantineDir)) != 1 {
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

// hardening: K3
func TestStoresShareDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	stores := make([]*Store, 4)
	for i := range stores {
		s, err := Open(dir, Options{})
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
//
// hardening: K3
func TestOpenKeepsUnfinishedWrites(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	first, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	in, out := io.Pipe()
	done := make(chan error)
	go func() { done <- first.Put(t.Context(), oci.DigestOf([]byte("hello")), 5, in) }()
	if _, err := out.Write([]byte("hel")); err != nil {
		t.Fatal(err)
	}
	second, err := Open(dir, Options{})
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
	if !second.Has(oci.DigestOf([]byte("hello"))) {
		t.Error("the other store does not see it")
	}
}

// hardening: K4
func TestUnsafeDirectoryIsRefused(t *testing.T) {
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
				prerequisite.Missing(t, "only root can give files away: %v", err)
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
			_, err := Open(dir, Options{})
			ocitest.WantCode(t, err, ErrUnsafeStore)
		})
	}
	t.Run("File", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "store")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(file, Options{})
		ocitest.WantCode(t, err, ErrStoreWrite)
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

// hardening: K4
func TestPlantedLinkIsReplaced(t *testing.T) {
	s := newStore(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := oci.DigestOf([]byte("secret"))
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
	ocitest.WantCode(t, err, oci.ErrBlobNotFound)
	put(t, s, "secret")
	if info, err := os.Lstat(s.blobPath(d)); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// hardening: K6
func TestOtherFormatIsReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := put(t, s, "hello")
	if err := os.WriteFile(filepath.Join(dir, formatFile), []byte("xpkg store 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir, Options{})
	ocitest.WantCode(t, err, ErrStoreInUse)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Has(d) {
		t.Error("content of another format is still there")
	}
	put(t, s, "hello")
}

// hardening: K6
func TestDerivedEntryOfOtherVersionIsNotRead(t *testing.T) {
	s := newStore(t)
	key := DerivedKey{Digest: oci.DigestOf([]byte("blob")), Name: "index", Version: 1}
	_, err := s.GetDerived(t.Context(), key)
	ocitest.WantCode(t, err, oci.ErrBlobNotFound)
	if err := s.PutDerived(t.Context(), key, []byte("value")); err != nil {
		t.Fatal(err)
	}
	if got, err := s.GetDerived(t.Context(), key); err != nil || string(got) != "value" {
		t.Errorf("%q %v", got, err)
	}
	newer := key
	newer.Version++
	_, err = s.GetDerived(t.Context(), newer)
	ocitest.WantCode(t, err, oci.ErrBlobNotFound)
}

func TestOpenDerived(t *testing.T) {
	s := newStore(t)
	key := DerivedKey{Digest: oci.DigestOf([]byte("blob")), Name: "objects", Version: 1}
	_, err := s.OpenDerived(t.Context(), key)
	ocitest.WantCode(t, err, oci.ErrBlobNotFound)
	ocitest.Must(t, s.PutDerived(t.Context(), key, []byte("a value of some length")))
	d, err := s.OpenDerived(t.Context(), key)
	ocitest.Must(t, err)
	defer d.Close()
	ocitest.Must(t, os.Remove(s.derivedPath(key)))
	part := make([]byte, 5)
	if n, err := d.ReadAt(part, 2); err != nil || string(part[:n]) != "value" || d.Size() != 22 {
		t.Errorf("read %q of %d bytes: %v", part[:n], d.Size(), err)
	}
	if n, err := d.ReadAt(part, 20); n != 2 || !errors.Is(err, io.EOF) {
		t.Errorf("read %d bytes at the end: %v", n, err)
	}
}

// hardening: K2
func TestDamagedDerivedEntryIsNotRead(t *testing.T) {
	key := DerivedKey{Digest: oci.DigestOf([]byte("blob")), Name: "index", Version: 1}
	other := DerivedKey{Digest: oci.DigestOf([]byte("other")), Name: "index", Version: 1}
	tests := map[string]func(t *testing.T, s *Store){
		"Truncated": func(t *testing.T, s *Store) { ocitest.Must(t, os.Truncate(s.derivedPath(key), 34)) },
		"Short":     func(t *testing.T, s *Store) { ocitest.Must(t, os.Truncate(s.derivedPath(key), 3)) },
		"Exchanged": func(t *testing.T, s *Store) {
			ocitest.Must(t, s.PutDerived(t.Context(), other, []byte("other value")))
			ocitest.Must(t, os.Rename(s.derivedPath(other), s.derivedPath(key)))
		},
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			ocitest.Must(t, s.PutDerived(t.Context(), key, []byte("value")))
			damage(t, s)
			_, err := s.GetDerived(t.Context(), key)
			ocitest.WantCode(t, err, oci.ErrDigestMismatch)
			_, err = s.GetDerived(t.Context(), key)
			ocitest.WantCode(t, err, oci.ErrBlobNotFound)
		})
	}
}

func TestStoreRecordsUse(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s, err := Open(filepath.Join(t.TempDir(), "store"), Options{Now: func() time.Time { return now }})
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
