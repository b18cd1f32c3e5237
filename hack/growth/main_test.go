package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/benchresult"
)

// The picture of the documentation shows the committed results: `make growth` draws it.
func TestPictureIsUpToDate(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	want, err := os.ReadFile(filepath.Join(docs, "growth.svg"))
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := run([]string{filepath.Join(docs, "performance.json")}, &got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Error("docs/growth.svg does not show the results of docs/performance.json: run make growth")
	}
}

func TestPictureHasEveryMeasuredSize(t *testing.T) {
	var rows []benchresult.Row
	for _, size := range []int{100, 500, 1000, 2043} {
		for _, key := range []string{"bare-install", "install", "upgrade", "bare-removal", "removal"} {
			rows = append(rows, benchresult.Row{Group: "crds", Size: size, Key: key, Server: float64(size) / 10})
		}
	}
	rows = append(rows, benchresult.Row{Group: "comparison", Size: 101, Key: "Crossplane core: install", Server: 71})
	image := picture(rows)
	for _, want := range []string{">2043<", ">100<", ">71.0 s, Crossplane core<", ">300 s<", "xpkg: uninstall"} {
		if !strings.Contains(image, want) {
			t.Errorf("the picture does not contain %s", want)
		}
	}
	if n := strings.Count(image, "<circle"); n != len(rows)-1 {
		t.Errorf("%d points, want %d", n, len(rows)-1)
	}
}

func TestNoResultsAreAnError(t *testing.T) {
	for _, args := range [][]string{nil, {filepath.Join(t.TempDir(), "missing.json")}} {
		if err := run(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%q were accepted", args)
		}
	}
}
