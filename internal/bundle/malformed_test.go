package bundle_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/bundle"
	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// aBundle returns a bundle and what is in it.
func aBundle(t testing.TB) ([]byte, *closure) {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 12))
	c := newClosure(t, random, serve(t, ours(t)), 3)
	return read(t, saved(t, c.items(t, random), bundle.SaveOptions{})), c
}

// entry is a file of a tar.
type entry struct {
	header *tar.Header
	data   []byte
}

func entriesOf(t testing.TB, raw []byte) []entry {
	t.Helper()
	var out []entry
	for r := tar.NewReader(bytes.NewReader(raw)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		check(t, err)
		data, err := io.ReadAll(r)
		out = append(out, entry{h, must(t, data, err)})
	}
}

func tarOf(t testing.TB, entries []entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		check(t, w.WriteHeader(e.header))
		_, err := w.Write(e.data)
		check(t, err)
	}
	check(t, w.Close())
	return out.Bytes()
}

// A bundle of any other form than the one that xpkg writes is refused before anything is uploaded.
func TestMalformedBundles(t *testing.T) {
	raw, _ := aBundle(t)
	all := entriesOf(t, raw)
	sameBytes(t, tarOf(t, all), raw)
	last := len(all) - 1
	regular := func(name, data string) entry {
		return entry{&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o644}, []byte(data)}
	}
	replaced := func(i int, e ...entry) []entry {
		return append(append(append([]entry{}, all[:i]...), e...), all[i+1:]...)
	}
	link := func(kind byte) entry {
		return entry{&tar.Header{Typeflag: kind, Name: all[last].header.Name, Linkname: "/etc/passwd"}, nil}
	}
	renamed := *all[last].header
	renamed.Name = "../" + renamed.Name
	executable := *all[last].header
	executable.Mode = 0o755
	for name, content := range map[string][]byte{
		"empty":            nil,
		"text":             []byte(strings.Repeat("text ", 1000)),
		"gzip":             append([]byte{0x1f, 0x8b}, raw...),
		"cut in a header":  raw[:700],
		"cut in a blob":    raw[:len(raw)-1024-700],
		"without its end":  raw[:len(raw)-1024],
		"longer":           append(bytes.Clone(raw), make([]byte, 512)...),
		"other end":        append(bytes.Clone(raw[:len(raw)-1]), 1),
		"another entry":    tarOf(t, append(bytes0(all), regular("more", "text"))),
		"an entry twice":   tarOf(t, append(bytes0(all), all[last])),
		"without an entry": tarOf(t, all[:last]),
		"other order":      tarOf(t, replaced(last-1, all[last], all[last-1])[:last+1]),
		"path outside":     tarOf(t, replaced(last, entry{&renamed, all[last].data})),
		"other mode":       tarOf(t, replaced(last, entry{&executable, all[last].data})),
		"symbolic link":    tarOf(t, replaced(last, link(tar.TypeSymlink))),
		"hard link":        tarOf(t, replaced(last, link(tar.TypeLink))),
		"device":           tarOf(t, replaced(last, link(tar.TypeChar))),
		"other size":       tarOf(t, replaced(last, regular(all[last].header.Name, "text"))),
		"other layout":     tarOf(t, replaced(0, regular("oci-layout", `{"imageLayoutVersion":"2.0.0"}`))),
		"other index":      tarOf(t, replaced(1, regular("index.json", `{"schemaVersion":2,"manifests":[]}`))),
		"no JSON":          tarOf(t, replaced(1, regular("index.json", `{`))),
		"spaces in JSON":   tarOf(t, replaced(1, regular("index.json", string(all[1].data)+" "))),
		"other contents":   tarOf(t, replaced(3, regular(all[3].header.Name, `{"blobs":[]}`))),
	} {
		file := filepath.Join(t.TempDir(), "bundle.tar")
		check(t, os.WriteFile(file, content, 0o600))
		_, err := bundle.Open(file)
		if !errors.Is(err, bundle.ErrDamaged) && !errors.Is(err, bundle.ErrNotABundle) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func bytes0(all []entry) []entry { return append([]entry{}, all...) }

// A changed byte anywhere is found, and no tag refers to damaged or missing content.
func TestDamagedBundles(t *testing.T) {
	raw, c := aBundle(t)
	random := rand.New(rand.NewPCG(1, 13))
	for at := random.IntN(300); at < len(raw); at += 1 + random.IntN(600) {
		damaged := bytes.Clone(raw)
		damaged[at] ^= byte(1 + random.IntN(255))
		file := filepath.Join(t.TempDir(), "bundle.tar")
		check(t, os.WriteFile(file, damaged, 0o600))
		prefix := serve(t, ours(t))
		err := load(t.Context(), newClient(t, nil), file, prefix)
		if !errors.Is(err, bundle.ErrDamaged) && !errors.Is(err, bundle.ErrNotABundle) {
			t.Fatalf("byte %d: %v", at, err)
		}
		checkTags(t, newClient(t, nil), relocated(t, c.refs, prefix))
	}
}

// Skopeo reads the artifacts of a bundle by their names.
func TestSkopeoReadsBundles(t *testing.T) {
	program, err := exec.LookPath("skopeo")
	if err != nil {
		prerequisite.Missing(t, "skopeo is not installed: apt-get install skopeo")
	}
	random := rand.New(rand.NewPCG(3, 14))
	c := newClosure(t, random, serve(t, ours(t)), 3)
	file := saved(t, c.items(t, random), bundle.SaveOptions{})
	for _, ref := range c.refs {
		name := strings.TrimSuffix(ref.String(), "@"+ref.Digest.String())
		to := filepath.Join(t.TempDir(), "copy")
		out, err := exec.Command(
			program, "--insecure-policy", "copy", "--all", "oci-archive:"+file+":"+name, "dir:"+to,
		).CombinedOutput()
		if err != nil {
			t.Fatalf("skopeo: %v\n%s", err, out)
		}
		if got := oci.DigestOf(read(t, filepath.Join(to, "manifest.json"))); got != ref.Digest {
			t.Errorf("skopeo copies %s as %s", ref, got)
		}
	}
}

// Whatever the bytes of a file are, a bundle that is opened is that of one form, and reading it does not fail otherwise.
func FuzzOpen(f *testing.F) {
	raw, _ := aBundle(f)
	f.Add(raw)
	f.Add(raw[:2048])
	f.Add([]byte("text"))
	file := filepath.Join(f.TempDir(), "bundle.tar")
	f.Fuzz(func(t *testing.T, data []byte) {
		check(t, os.WriteFile(file, data, 0o600))
		b, err := bundle.Open(file)
		if err != nil {
			if !errors.Is(err, bundle.ErrDamaged) && !errors.Is(err, bundle.ErrNotABundle) &&
				!errors.Is(err, oci.ErrManifestTooLarge) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		names := map[string]bool{}
		for _, e := range b.Entries() {
			if names[e.Ref.String()] {
				t.Fatalf("%s exists twice", e.Ref)
			}
			names[e.Ref.String()] = true
		}
		check(t, b.Close())
	})
}
