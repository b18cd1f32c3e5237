package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/malformed"
)

// peakOf reads a package with xpkg in a process of its own, and returns the output and the
// most memory that the process held, in MiB.
func peakOf(t *testing.T, file string) (output string, mib int64) {
	t.Helper()
	peak := filepath.Join(t.TempDir(), "peak")
	cmd := exec.Command(os.Args[0], "inspect", file)
	cmd.Env = append(os.Environ(), peakVariable+"="+peak)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	text, err := os.ReadFile(peak)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	size, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), size >> 20
}

// A hostile package of a few KiB takes a bounded amount of memory more than a sound one: compression bombs,
// large windows, false sizes and very many entries.
//
// hardening: C1
func TestHostilePackagesTakeBoundedMemory(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	cases, err := malformed.Load(filepath.Join("..", "..", "testdata", "malformed", "image", "cases.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(c malformed.Case) string {
		path := filepath.Join(dir, c.ID+".xpkg")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.Write(f), f.Close()); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const mostMiB = 96
	sound, hostile, rejected := int64(0), map[string]int64{}, 0
	for _, c := range cases {
		if !strings.HasPrefix(c.Hardening, "C") {
			continue
		}
		output, mib := peakOf(t, write(c))
		if c.Expect == "ok" {
			sound = max(sound, mib)
			continue
		}
		hostile[c.ID] = mib
		if strings.Contains(output, "error: "+c.Expect) {
			rejected++
		}
	}
	for id, mib := range hostile {
		if mib > sound+mostMiB {
			t.Errorf("%s takes %d MiB, and a sound package %d", id, mib, sound)
		}
	}
	if sound == 0 || rejected < len(hostile)/2 {
		t.Errorf(
			"%d of %d packages were rejected with their code; a sound package takes %d MiB", rejected, len(hostile), sound,
		)
	}
	t.Logf("sound: %d MiB; hostile: %v", sound, hostile)
}
