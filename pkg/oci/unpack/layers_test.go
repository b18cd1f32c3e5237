package unpack

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// layerEntry is an entry of a layer in a test; the name of a folder ends with a
// slash.
type layerEntry struct {
	name, link, data string
	mode             int64
	kind             byte
	records          map[string]string
}

func (e layerEntry) header() *tar.Header {
	h := &tar.Header{
		Name: e.name, Linkname: e.link, Mode: e.mode, Typeflag: e.kind, Size: int64(len(e.data)),
		ModTime: time.Unix(1_700_000_000, 0), PAXRecords: e.records,
	}
	if h.Typeflag == 0 {
		h.Typeflag = tar.TypeReg
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
	}
	if h.Mode == 0 {
		h.Mode = 0o644
	}
	return h
}

func layerOf(t testing.TB, entries ...layerEntry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		if err := w.WriteHeader(e.header()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// place is a folder to unpack into that has a neighbor.
type place struct{ outer, root string }

func newPlace(t testing.TB) place {
	t.Helper()
	outer := t.TempDir()
	p := place{outer: outer, root: filepath.Join(outer, "root")}
	if err := os.Mkdir(p.root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.neighbor(), []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p place) neighbor() string { return filepath.Join(p.outer, "neighbor") }

// check proves that nothing but the folder was touched, and that nothing in it
// leads out.
func (p place) check(t reporter) {
	t.Helper()
	if content, err := os.ReadFile(p.neighbor()); err != nil || string(content) != "untouched" {
		t.Errorf("the neighbor was changed: %q, %v", content, err)
	}
	if entries, err := os.ReadDir(p.outer); err != nil || len(entries) != 2 {
		t.Errorf("something was written beside the root: %v, %v", entries, err)
	}
	checkConfined(t, p.root)
}

// unpackLayers unpacks plain tars, the lowest first, and proves that they stayed
// where they belong.
func unpackLayers(t testing.TB, store *store.Store, limits Limits, layers ...[]byte) (string, error) {
	t.Helper()
	p := newPlace(t)
	var image RuntimeImage
	for _, layer := range layers {
		d, err := store.PutBytes(t.Context(), layer)
		if err != nil {
			t.Fatal(err)
		}
		image.Layers = append(image.Layers, oci.Descriptor{
			MediaType: oci.MediaTypeOCILayer, Digest: d, Size: int64(len(layer)),
		})
	}
	_, err := RootFS(t.Context(), store, image, p.root, limits)
	p.check(t)
	return p.root, err
}

// checkConfined proves that nothing in an unpacked image is a device, has setuid or
// setgid, or is a link that leads out.
func checkConfined(t reporter, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0 {
			t.Errorf("%s is %s", p, info.Mode())
		}
		if info.Mode().Type() != fs.ModeSymlink {
			return nil
		}
		// Where a link really leads, as far as there is something.
		real, err := filepath.EvalSymlinks(p)
		if err == nil && below(real, root) {
			return nil
		}
		target, linkErr := os.Readlink(p)
		if err == nil || linkErr != nil || filepath.IsAbs(target) || !below(filepath.Join(filepath.Dir(p), target), root) {
			t.Errorf("%s leads to %s, %s", p, target, real)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func below(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// tree lists the content of an unpacked image: directories end with a slash, and links
// have their target.
func tree(t testing.TB, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		name, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			found[name+"/"] = ""
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			found[name] = "-> " + target
		default:
			content, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			found[name] = string(content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// reporter is a test of testing, or of rapid.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}
