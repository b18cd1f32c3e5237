package store

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

var objectsKey = DerivedKey{Digest: oci.DigestOf([]byte("blob")), Name: "objects", Version: 1}

// writeDerived stores "hello world" in two parts, and reads it before it is stored.
func writeDerived(t *testing.T, s *Store, size int64) (err error) {
	t.Helper()
	w, err := s.NewDerived(t.Context(), objectsKey, size)
	if err != nil {
		return err
	}
	defer func() { ocitest.Must(t, w.Discard()) }()
	for _, part := range []string{"hello ", "world"} {
		if _, err := io.WriteString(w, part); err != nil {
			return err
		}
	}
	part := make([]byte, 5)
	if n, err := w.ReadAt(part, 6); err != nil || string(part[:n]) != "world" || w.Size() != 11 {
		t.Errorf("read %q of %d bytes: %v", part[:n], w.Size(), err)
	}
	if n, err := w.ReadAt(part, 9); n != 2 || !errors.Is(err, io.EOF) {
		t.Errorf("read %d bytes at the end: %v", n, err)
	}
	return w.Commit()
}

// A value that is written in parts is the value of PutDerived, whether it is shorter or longer than expected.
func TestDerivedWriterStoresTheValue(t *testing.T) {
	for _, size := range []int64{0, 5, 11, 1000} {
		now := time.Now()
		s := storeAt(t, &now, Options{})
		s.makeRoom = func(_ context.Context, _ Need, reserve func() error) error { return reserve() }
		ocitest.Must(t, writeDerived(t, s, size))
		if got, err := s.GetDerived(t.Context(), objectsKey); err != nil || string(got) != "hello world" {
			t.Errorf("with space for %d bytes: %q, %v", size, got, err)
		}
		if files := ocitest.FilesUnder(t, s.Dir(), tempDir); len(files) != 0 {
			t.Errorf("with space for %d bytes: left behind %v", size, files)
		}
	}
}

func TestDiscardedValueIsNotStored(t *testing.T) {
	s := newStore(t)
	w, err := s.NewDerived(t.Context(), objectsKey, 5)
	ocitest.Must(t, err)
	_, err = io.WriteString(w, "hello")
	ocitest.Must(t, err)
	ocitest.Must(t, w.Discard())
	_, err = s.GetDerived(t.Context(), objectsKey)
	ocitest.WantCode(t, err, oci.ErrBlobNotFound)
	if files := ocitest.FilesUnder(t, s.Dir(), tempDir); len(files) != 0 {
		t.Errorf("left behind %v", files)
	}
}

// hardening: K1
func TestErrorAtEachStepOfADerivedValueLeavesNothing(t *testing.T) {
	broken := errors.New("input/output error")
	for n := range 20 {
		left := n
		s := newStore(t)
		s.makeRoom = func(_ context.Context, _ Need, reserve func() error) error { return reserve() }
		s.before = func(string) error {
			if left--; left == -1 {
				return broken
			}
			return nil
		}
		err := writeDerived(t, s, 11)
		s.before = nil
		if files := ocitest.FilesUnder(t, s.Dir(), tempDir); len(files) != 0 {
			t.Errorf("failed at step %d: left behind %v", n, files)
		}
		got, getErr := s.GetDerived(t.Context(), objectsKey)
		if getErr == nil && string(got) != "hello world" {
			t.Errorf("failed at step %d: %q is there", n, got)
		}
		if err == nil {
			if getErr != nil || n < 6 {
				t.Errorf("after %d steps: %v", n, getErr)
			}
			return
		}
		ocitest.WantCode(t, err, ErrStoreWrite)
	}
	t.Error("a write has no end")
}
