package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// newDir returns the folder of a supervisor with an empty log folder.
func newDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := Prune(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func readAll(t testing.TB, dir, name string, tail int) string {
	t.Helper()
	r, err := Open(t.Context(), dir, name, false, tail)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestLogTail(t *testing.T) {
	long := strings.Repeat("x", tailBlock)
	tests := []struct {
		old, now string
		tail     int
		want     string
	}{
		{"", "1\n2\n3\n", -1, "1\n2\n3\n"},
		{"", "1\n2\n3\n", 0, ""},
		{"", "1\n2\n3\n", 1, "3\n"},
		{"", "1\n2\n3\n", 2, "2\n3\n"},
		{"", "1\n2\n3\n", 3, "1\n2\n3\n"},
		{"", "1\n2\n3\n", 9, "1\n2\n3\n"},
		{"", "1\n2", 1, "2"},
		{"", "\n\n\n", 2, "\n\n"},
		{"", "", 5, ""},
		{"a\nb\n", "1\n2\n", -1, "a\nb\n1\n2\n"},
		{"a\nb\n", "1\n2\n", 2, "1\n2\n"},
		{"a\nb\n", "1\n2\n", 3, "b\n1\n2\n"},
		{"a\nb\n", "", 1, "b\n"},
		{"", long + "\n" + long + "\n2\n", 2, long + "\n2\n"},
		{"", long + "\n" + long + "y\n2\n", 3, long + "\n" + long + "y\n2\n"},
	}
	for i, test := range tests {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			dir := newDir(t)
			for path, content := range map[string]string{logPath(dir, "p"): test.now, rotatedPath(dir, "p"): test.old} {
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := readAll(t, dir, "p", test.tail); got != test.want {
				t.Errorf("got %.60q, want %.60q", got, test.want)
			}
		})
	}
}

func TestNoLog(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"absent", "../x", ""} {
		if _, err := Open(t.Context(), dir, name, false, -1); !errors.Is(err, ErrNoLog) {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

// A log has whole lines, loses none before there are two full files, and stays within its
// size limit, regardless of how the runtime writes.
func TestLogRotation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := newDir(t)
		most := rapid.Int64Range(1, 200).Draw(rt, "most")
		l, err := NewWriter(dir, "p", most)
		if err != nil {
			rt.Fatal(err)
		}
		var all strings.Builder
		for i := range rapid.IntRange(1, 40).Draw(rt, "writes") {
			text := strings.Repeat(fmt.Sprintf("%d ", i), rapid.IntRange(0, 20).Draw(rt, "words")) +
				rapid.SampledFrom([]string{"\n", "", "\n\n"}).Draw(rt, "end")
			all.WriteString(text)
			if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
				rt.Fatal(n, err)
			}
		}
		if err := l.Close(); err != nil {
			rt.Fatal(err)
		}
		got := readAll(t, dir, "p", -1)
		if !strings.HasSuffix(all.String(), got) {
			rt.Fatalf("%q does not end with %q", all.String(), got)
		}
		old, err := os.ReadFile(rotatedPath(dir, "p"))
		if err == nil && !strings.HasSuffix(string(old), "\n") {
			rt.Fatalf("a log was put aside within a line: %q", old)
		}
		if err != nil && got != all.String() {
			rt.Fatal("something is lost although there is one log")
		}
	})
}

// A runtime that writes one line at a time, as most do, has logs within the limit too.
func TestLogOfSingleLinesIsRotated(t *testing.T) {
	dir := newDir(t)
	const limit, line = 100, "a line of output\n"
	l, err := NewWriter(dir, "p", limit)
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		if _, err := l.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{logPath(dir, "p"), rotatedPath(dir, "p")} {
		if info, err := os.Stat(path); err != nil || info.Size() > limit {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}

func TestLogOfALineWithoutEnd(t *testing.T) {
	dir := newDir(t)
	l, err := NewWriter(dir, "p", 100)
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		if _, err := l.Write([]byte(strings.Repeat("x", 1000))); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{logPath(dir, "p"), rotatedPath(dir, "p")} {
		if info, err := os.Stat(path); err != nil || info.Size() > 100+maxLine+1000 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}

func TestFollowAcrossRotations(t *testing.T) {
	dir := newDir(t)
	l, err := NewWriter(dir, "p", 100)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if _, err := l.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write("old 1\nold 2\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := Open(ctx, dir, "p", true, 1)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(r)
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, %v, want %q", lines.Text(), lines.Err(), want)
		}
	}
	expect("old 2")
	for i := range 20 {
		// The log is rotated before or between the two writes.
		write(fmt.Sprintf("%d %s\n", i, strings.Repeat("a", 30)))
		write(fmt.Sprintf("%d %s\n", i, strings.Repeat("b", 30)))
		expect(fmt.Sprintf("%d %s", i, strings.Repeat("a", 30)))
		expect(fmt.Sprintf("%d %s", i, strings.Repeat("b", 30)))
	}
	cancel()
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("got %q, %v after the end", lines.Text(), lines.Err())
	}
	if err := errors.Join(r.Close(), l.Close()); err != nil {
		t.Error(err)
	}
}

func TestOldLogsArePruned(t *testing.T) {
	dir := newDir(t)
	for i := range maxKept + 2 {
		for _, path := range []string{logPath(dir, fmt.Sprint("p", i)), rotatedPath(dir, fmt.Sprint("p", i))} {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := Prune(dir); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, Folder, "*"))
	if err != nil || len(left) != 2*maxKept {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}
