package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"first", "second"} {
		err := Write(path, 0o600, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
		got, readErr := os.ReadFile(path)
		if err != nil || readErr != nil || string(got) != text {
			t.Fatalf("%q %v %v", got, err, readErr)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v (%v)", info.Mode(), err)
		}
	}
	broken := errors.New("broken")
	err := Write(path, 0o600, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return broken
	})
	got, readErr := os.ReadFile(path)
	if !errors.Is(err, broken) || readErr != nil || string(got) != "second" {
		t.Errorf("%q %v %v", got, err, readErr)
	}
	if err := Write(filepath.Join(dir, "no", "file"), 0o600, func(io.Writer) error { return nil }); err == nil {
		t.Error("a file was written where there is no folder")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v was left behind (%v)", entries, err)
	}
}
