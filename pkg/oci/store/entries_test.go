package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

// storeAt returns a store whose clock stands still.
func storeAt(t *testing.T, now *time.Time, opts Options) *Store {
	t.Helper()
	opts.Now = func() time.Time { return *now }
	s, err := Open(filepath.Join(t.TempDir(), "store"), opts)
	ocitest.Must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func entries(t *testing.T, s *Store) []Entry {
	t.Helper()
	all, err := s.Entries(t.Context())
	ocitest.Must(t, err)
	return all
}

func TestEntries(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := storeAt(t, &now, Options{})
	d := put(t, s, "hello")
	key := DerivedKey{Digest: d, Name: "index-proof", Version: 12}
	ocitest.Must(t, s.PutDerived(t.Context(), key, []byte("value")))
	now = now.Add(time.Hour)
	other := put(t, s, "other")
	for _, stray := range []string{"blobs/xx", "blobs/ab/" + d.Hex(), "derived/none-1", "derived/" + d.Hex() +
		"-index-x"} {
		ocitest.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(s.dir, stray)), 0o700))
		ocitest.Must(t, os.WriteFile(filepath.Join(s.dir, stray), nil, 0o600))
	}
	got := entries(t, s)
	for i := range got {
		got[i].stamp = time.Time{}
		got[i].LastUsed = got[i].LastUsed.UTC()
	}
	want := []Entry{
		{Digest: d, Size: 5, LastUsed: now.Add(-time.Hour)},
		{Digest: d, Name: "index-proof", Version: 12, Size: 37, LastUsed: now.Add(-time.Hour)},
		{Digest: other, Size: 5, LastUsed: now},
	}
	slices.SortFunc(want, func(a, b Entry) int { return strings.Compare(a.String(), b.String()) })
	slices.SortFunc(got, func(a, b Entry) int { return strings.Compare(a.String(), b.String()) })
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Entry{}, oci.Digest{})); diff != "" {
		t.Error(diff)
	}
}

// A wrong clock does not keep entries forever.
func TestEntriesOfTheFuture(t *testing.T) {
	now := time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)
	s := storeAt(t, &now, Options{})
	put(t, s, "hello")
	now = now.AddDate(-10, 0, 0)
	if e := entries(t, s)[0]; !e.LastUsed.IsZero() {
		t.Errorf("last used %s", e.LastUsed)
	}
}

func TestPeekRecordsNoUse(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := storeAt(t, &now, Options{})
	d := put(t, s, "hello")
	before := now
	now = now.Add(time.Hour)
	peek := s.Peek()
	_, err := peek.Get(t.Context(), d, 10)
	ocitest.Must(t, err)
	f, err := peek.Open(t.Context(), d)
	ocitest.Must(t, err)
	ocitest.Must(t, f.Close())
	ocitest.Must(t, peek.PutDerived(t.Context(), DerivedKey{Digest: d, Name: "x"}, nil))
	all := entries(t, s)
	if !all[0].LastUsed.Equal(before) || !all[1].LastUsed.IsZero() {
		t.Errorf("%+v", all)
	}
}

func TestEvict(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := map[string]struct {
		meanwhile func(t *testing.T, s *Store, d oci.Digest)
		want      bool
	}{
		"Idle": {func(*testing.T, *Store, oci.Digest) {}, true},
		"Open": {func(t *testing.T, s *Store, d oci.Digest) {
			f, err := s.Peek().Open(t.Context(), d)
			ocitest.Must(t, err)
			t.Cleanup(func() { _ = f.Close() })
		}, false},
		"OpenAndClosed": {func(t *testing.T, s *Store, d oci.Digest) {
			f, err := s.Peek().Open(t.Context(), d)
			ocitest.Must(t, err)
			ocitest.Must(t, f.Close())
		}, true},
		"Used": {func(t *testing.T, s *Store, d oci.Digest) {
			_, err := s.Get(t.Context(), d, 10)
			ocitest.Must(t, err)
		}, false},
		// A caller that finds content and does not write it again can rely on it.
		"PutAgain": {func(t *testing.T, s *Store, _ oci.Digest) { put(t, s, "hello") }, false},
		"Gone": {func(t *testing.T, s *Store, d oci.Digest) {
			ocitest.Must(t, os.Remove(s.blobPath(d)))
		}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := storeAt(t, &now, Options{})
			d := put(t, s, "hello")
			e := entries(t, s)[0]
			now = now.Add(time.Hour)
			tc.meanwhile(t, s, d)
			if got, err := s.Evict(e); got != tc.want || err != nil {
				t.Errorf("evicted: %t (%v)", got, err)
			}
			if name != "Gone" && s.Has(d) == tc.want {
				t.Error("the entry is not as Evict says")
			}
		})
	}
}

// An open derived value is not evicted, and neither does its removal break it.
func TestEvictDerived(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := storeAt(t, &now, Options{})
	key := DerivedKey{Digest: oci.DigestOf([]byte("x")), Name: "objects"}
	ocitest.Must(t, s.PutDerived(t.Context(), key, []byte("value")))
	open, err := s.OpenDerived(t.Context(), key)
	ocitest.Must(t, err)
	if gone, err := s.Evict(entries(t, s)[0]); gone || err != nil {
		t.Errorf("evicted while it is open (%v)", err)
	}
	ocitest.Must(t, open.Close())
	if gone, err := s.Evict(entries(t, s)[0]); !gone || err != nil {
		t.Errorf("not evicted (%v)", err)
	}
}

// Space is requested before the first byte is written, and reserved on the disk until the
// entry exists.
func TestMakeRoom(t *testing.T) {
	now := time.Now()
	var asked []Need
	var s *Store
	refuse := error(nil)
	s = storeAt(t, &now, Options{MakeRoom: func(ctx context.Context, need Need, reserve func() error) error {
		asked = append(asked, need)
		if refuse != nil {
			return refuse
		}
		err := reserve()
		if n, unsettled := s.sum(ctx, tempDir, quarantineDir); n != need.Bytes || unsettled != nil {
			t.Errorf("%d bytes are reserved for %d (%v)", n, need.Bytes, unsettled)
		}
		return err
	}})
	d := put(t, s, "hello")
	put(t, s, "hello")
	ocitest.Must(t, s.PutDerived(t.Context(), DerivedKey{Digest: d, Name: "x"}, []byte("1234")))
	if diff := cmp.Diff([]Need{{Bytes: 5}, {Bytes: 36, Derived: true}}, asked); diff != "" {
		t.Error(diff)
	}
	refuse = oci.ErrManifestTooLarge.New(nil, "no room")
	if _, err := s.PutBytes(t.Context(), []byte("more")); !errors.Is(err, refuse) {
		t.Errorf("got %v", err)
	}
	if n, err := s.sum(t.Context(), tempDir, quarantineDir); n != 0 || err != nil {
		t.Errorf("%d bytes are left (%v)", n, err)
	}
}

func TestSweep(t *testing.T) {
	now := time.Now()
	s := storeAt(t, &now, Options{})
	d := put(t, s, "hello")
	ocitest.Must(t, os.Truncate(s.blobPath(d), 2))
	_, err := s.Get(t.Context(), d, 10)
	ocitest.WantCode(t, err, oci.ErrDigestMismatch)
	old := now.Add(-time.Hour)
	for _, name := range []string{"abandoned", "recent"} {
		ocitest.Must(t, os.WriteFile(filepath.Join(s.dir, tempDir, name), []byte("12345"), 0o600))
	}
	ocitest.Must(t, os.Chtimes(filepath.Join(s.dir, tempDir, "abandoned"), old, old))
	working, err := s.temp(100)
	ocitest.Must(t, err)
	defer working.Close()
	ocitest.Must(t, os.Chtimes(working.Name(), old, old))
	freed, err := s.Sweep(t.Context(), now.Add(-time.Minute))
	if freed != 7 || err != nil {
		t.Errorf("freed %d bytes (%v)", freed, err)
	}
	left := ocitest.FilesUnder(t, s.Dir(), tempDir)
	slices.Sort(left)
	if diff := cmp.Diff([]string{working.Name(), filepath.Join(s.dir, tempDir, "recent")}, left); diff != "" {
		t.Error(diff)
	}
}

func TestRecords(t *testing.T) {
	s := newStore(t)
	for _, name := range []string{"a", "../../../../etc/passwd", "", strings.Repeat("long/", 1000)} {
		ocitest.Must(t, s.PutRecord(Record{Kind: "names", Name: name, Data: []byte("old")}))
		ocitest.Must(t, s.PutRecord(Record{Kind: "names", Name: name, Data: []byte(name)}))
	}
	ocitest.Must(t, s.RemoveRecord(Record{Kind: "names"}))
	ocitest.Must(t, s.RemoveRecord(Record{Kind: "names", Name: "never there"}))
	if r, err := s.GetRecord(t.Context(), "names", "a"); err != nil || string(r.Data) != "a" {
		t.Errorf("record a: %q (%v)", r.Data, err)
	}
	_, err := s.GetRecord(t.Context(), "names", "")
	ocitest.WantCode(t, err, oci.ErrBlobNotFound)
	got, err := s.Records(t.Context(), "names")
	ocitest.Must(t, err)
	if len(got) != 3 || len(ocitest.FilesUnder(t, s.Dir(), recordsDir)) != 3 {
		t.Errorf("records: %.50q", got)
	}
	if got, err := s.Records(t.Context(), "uses"); len(got) != 0 || err != nil {
		t.Errorf("records of another kind: %q (%v)", got, err)
	}
	// Records survive a change of the format.
	ocitest.Must(t, os.WriteFile(filepath.Join(s.dir, formatFile), []byte("xpkg store 0\n"), 0o600))
	ocitest.Must(t, s.Close())
	again, err := Open(s.dir, Options{})
	ocitest.Must(t, err)
	defer again.Close()
	if got, err := again.Records(t.Context(), "names"); len(got) != 3 || err != nil {
		t.Errorf("records after a change of the format: %.50q (%v)", got, err)
	}
}

func TestExclusive(t *testing.T) {
	first := newStore(t)
	second, err := Open(first.dir, Options{})
	ocitest.Must(t, err)
	defer second.Close()
	ocitest.Must(t, first.Exclusive(t.Context(), func() error {
		for _, s := range []*Store{first, second} {
			ctx, cancel := context.WithTimeout(t.Context(), 4*lockPoll)
			defer cancel()
			err := s.Exclusive(ctx, func() error { t.Error("two at once"); return nil })
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		}
		return nil
	}))
	ocitest.Must(t, second.Exclusive(t.Context(), func() error { return nil }))
}

// An error at any step of a write leaves nothing of it behind, and takes nothing
// away.
//
// hardening: K1
func TestWriteErrorAtEachStepLeavesNothing(t *testing.T) {
	broken := errors.New("input/output error")
	for n := range 20 {
		var steps []string
		left := n
		before := func(change string) error {
			steps = append(steps, change)
			if left--; left == -1 {
				return broken
			}
			return nil
		}
		now := time.Now()
		s := storeAt(t, &now, Options{})
		kept := put(t, s, "kept")
		s.before = before
		s.makeRoom = func(_ context.Context, _ Need, reserve func() error) error { return reserve() }
		_, err := s.PutBytes(t.Context(), []byte("hello"))
		s.before = nil
		if files := ocitest.FilesUnder(t, s.Dir(), tempDir); len(files) != 0 {
			t.Errorf("failed before %q: left behind %v", steps[n], files)
		}
		if _, err := s.Get(t.Context(), kept, 10); err != nil {
			t.Errorf("failed before %q: %v", steps[n], err)
		}
		got, getErr := s.Get(t.Context(), oci.DigestOf([]byte("hello")), 10)
		if getErr == nil && string(got) != "hello" {
			t.Errorf("failed before %q: %q is there", steps[n], got)
		}
		if err == nil {
			if getErr != nil || len(steps) < 6 {
				t.Errorf("after %q: %v", steps, getErr)
			}
			return
		}
		ocitest.WantCode(t, err, ErrStoreWrite)
	}
	t.Error("a write has no end")
}

// countingContext calls at before its count-th check.
type countingContext struct {
	context.Context
	count *int
	at    func()
}

func (c countingContext) Err() error {
	if *c.count--; *c.count == 0 {
		c.at()
	}
	return c.Context.Err()
}

// A file that another process moves while the files are counted counts: a temporary file that becomes an entry exactly
// once, at whichever moment that happens, and an entry that is put aside at least once.
func TestBytesCountsFilesThatMove(t *testing.T) {
	const size = 1000
	for name, c := range map[string]struct {
		from, to string
		most     int64
	}{
		"becomes an entry": {tempDir, blobsDir, 3 * size},
		"becomes derived":  {tempDir, derivedDir, 3 * size},
		"is put aside":     {blobsDir, quarantineDir, 4 * size},
	} {
		t.Run(name, func(t *testing.T) {
			moved := 0
			for at := 1; ; at++ {
				s := newStore(t)
				for _, file := range []string{
					filepath.Join(tempDir, "a"), filepath.Join(blobsDir, "b"), filepath.Join(c.from, "moves"),
				} {
					ocitest.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(s.dir, file)), 0o700))
					ocitest.Must(t, os.WriteFile(filepath.Join(s.dir, file), make([]byte, size), 0o600))
				}
				ocitest.Must(t, os.MkdirAll(filepath.Join(s.dir, c.to), 0o700))
				count := at
				ctx := countingContext{t.Context(), &count, func() {
					ocitest.Must(t, os.Rename(filepath.Join(s.dir, c.from, "moves"), filepath.Join(s.dir, c.to, "moves")))
					moved++
				}}
				n, err := s.Bytes(ctx)
				if err != nil || n < 3*size || n > c.most {
					t.Errorf("moved at check %d: %d bytes (%v)", at, n, err)
				}
				if count > 0 {
					break // All checks of the context have been tried.
				}
			}
			if moved < 5 {
				t.Errorf("the file was moved %d times only", moved)
			}
		})
	}
}
