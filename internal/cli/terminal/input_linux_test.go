package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestInputEndsWithTheContext proves that no input keeps a command from being interrupted:
// a pipe without data, a named pipe without a writer, and one without data.
func TestInputEndsWithTheContext(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(t.TempDir(), "open")
	if err := syscall.Mkfifo(open, 0o600); err != nil {
		t.Fatal(err)
	}
	// Read and write access opens a named pipe without waiting for its other end.
	writer, err := os.OpenFile(open, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	for name, file := range map[string]string{"standard input": "-", "no writer": fifo, "no data": open} {
		ctx, cancel := context.WithCancel(t.Context())
		env := &Env{Context: ctx, Stdin: in}
		done := make(chan error, 1)
		go func() {
			_, err := env.ReadInput(file)
			done <- err
		}()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInputIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	text := strings.Repeat("text ", 100_000)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, env := range []*Env{{Stdin: strings.NewReader(text)}, {Context: ctx, Stdin: strings.NewReader(text)}} {
		for _, name := range []string{"-", file} {
			env.Stdin = strings.NewReader(text)
			if got, err := env.ReadInput(name); err != nil || string(got) != text {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
		}
	}
	if _, err := (&Env{}).OpenInput(file + "-missing"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	var _ io.Reader = (&Env{}).Input()
}
