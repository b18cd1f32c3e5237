package unpack

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest/storetest"
)

// OCI image specification, "Applying Changesets".
func TestUnpackLayers(t *testing.T) {
	type layer = []layerEntry
	link := func(name, to string) layerEntry { return layerEntry{name: name, link: to, kind: tar.TypeSymlink} }
	hard := func(name, to string) layerEntry { return layerEntry{name: name, link: to, kind: tar.TypeLink} }
	file := func(name, data string) layerEntry { return layerEntry{name: name, data: data} }
	dir := func(name string) layerEntry { return layerEntry{name: name, mode: 0o755} }
	tests := map[string]struct {
		layers []layer
		want   map[string]string
	}{
		"nothing": {nil, map[string]string{}},
		"files and folders": {
			[]layer{{dir("./"), dir("./bin/"), file("./bin/x", "x"), file("/abs", "a"), file("made/up/y", "y")}},
			map[string]string{"bin/": "", "bin/x": "x", "abs": "a", "made/": "", "made/up/": "", "made/up/y": "y"},
		},
		"later layers win": {[]layer{{file("a", "1"), file("b", "1")}, {file("a", "2")}}, map[string]string{
			"a": "2", "b": "1",
		}},
		"the last of one layer wins": {[]layer{{file("a", "1"), file("a", "2"), dir("b/"), file("b/c", ""), file("b", "f")}},
			map[string]string{"a": "2", "b": "f"}},
		"a folder is made anew after a file took its place": {[]layer{{file("a/b/c", "1"), file("a", "f")}, {
			file("x", ""), dir("a/"), file("a/b/d", "2"),
		}},
			map[string]string{"a/": "", "a/b/": "", "a/b/d": "2", "x": ""}},
		"a file in the place of a folder with what is in it": {
			[]layer{{dir("d/"), file("d/e/f", "1")}, {file("d", "2")}}, map[string]string{"d": "2"},
		},
		"a folder in the place of a link": {
			[]layer{{dir("real/"), link("d", "real")}, {dir("d/"), file("d/x", "")}},
			map[string]string{"real/": "", "d/": "", "d/x": ""},
		},
		"whiteout": {[]layer{{file("d/a", ""), file("d/b", "")}, {file("d/.wh.a", "")}}, map[string]string{
			"d/": "", "d/b": "",
		}},
		"whiteout of a folder": {
			[]layer{{file("d/a/b", "")}, {file("d/.wh.a", "")}}, map[string]string{"d/": ""},
		},
		"whiteout of nothing": {
			[]layer{{file("a", "")}, {file(".wh.b", ""), file("c/.wh.d", ""), file("a/.wh.d", "")}}, map[string]string{"a": ""},
		},
		"whiteout spares its own layer, before and after": {[]layer{{file("d/old", ""), file("e", "old")}, {
			file("d/new", ""), file(".wh.d", ""), file(".wh.e", ""), file("e", "new"),
		}}, map[string]string{"d/": "", "d/new": "", "e": "new"}},
		"opaque folder": {[]layer{{file("d/a", ""), file("d/s/b", ""), file("e", "")}, {
			file("d/s/c", ""), file("d/.wh..wh..opq", ""), file("d/f", ""),
		}}, map[string]string{"d/": "", "d/s/": "", "d/s/c": "", "d/f": "", "e": ""}},
		"opaque root": {
			[]layer{{file("a", ""), file("d/b", "")}, {file(".wh..wh..opq", ""), file("c", "")}}, map[string]string{"c": ""},
		},
		"what old tools kept beside layers": {
			[]layer{{file(".wh..wh.aufs", ""), dir(".wh..wh.plnk/"), file(".wh..wh.orph/.wh..wh.x", "")}}, map[string]string{},
		},
		"below a link of a lower layer": {[]layer{
			{dir("usr/bin/"), link("bin", "usr/bin"), link("sbin", "/usr/bin"), file("usr/bin/old", "")},
			{file("bin/x", "x"), file("sbin/y", "y"), file("bin/.wh.old", "")},
		}, map[string]string{"usr/": "", "usr/bin/": "", "bin": "-> usr/bin", "sbin": "-> usr/bin", "usr/bin/x": "x",
			"usr/bin/y": "y"}},
		"links stay within": {[]layer{{
			link("a/b/abs", "/etc/x"), link("a/b/up", "../../../../../etc/x"), link("a/b/same", "x"), link("a/root", "/"),
			link("top", "../.."), link("a/loop", "loop"), link("a/b/mix", "c/../../d"),
		}},
			map[string]string{
				"a/": "", "a/b/": "", "a/b/abs": "-> ../../etc/x", "a/b/up": "-> ../../etc/x", "a/b/same": "-> x",
				"a/root": "-> ..", "top": "-> .", "a/loop": "-> loop", "a/b/mix": "-> ../d",
			}},
		"hard links": {
			[]layer{{file("a", "x"), hard("d/b", "a"), hard("./c", "/a"), hard("a", "a")}, {hard("e", "d/b")}},
			map[string]string{"a": "x", "d/": "", "d/b": "x", "c": "x", "e": "x"},
		},
		"a hard link to a link means the same": {[]layer{{
			file("d/t", "t"), link("d/l", "t"), hard("m", "d/l"), hard("e/f/n", "d/l"),
		}},
			map[string]string{
				"d/": "", "d/t": "t", "d/l": "-> t", "m": "-> d/t", "e/": "", "e/f/": "", "e/f/n": "-> ../../d/t",
			}},
		"devices of the machine of the author": {[]layer{{
			dir("dev/"), {name: "dev/null", kind: tar.TypeChar}, {name: "./dev/sda", kind: tar.TypeBlock}, file("dev/x", "x"),
			file("device", "d"),
		}}, map[string]string{"dev/": "", "device": "d"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var layers [][]byte
			for _, l := range test.layers {
				layers = append(layers, layerOf(t, l...))
			}
			root, err := unpackLayers(t, storetest.New(t), Limits{}, layers...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, tree(t, root)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnpackPermissionsAndTimes(t *testing.T) {
	root, err := unpackLayers(t, storetest.New(t), Limits{}, layerOf(t,
		layerEntry{name: "suid", mode: 0o6755}, layerEntry{name: "run", mode: 0o555}, layerEntry{name: "none", mode: 0o001},
		layerEntry{name: "tmp/", mode: 0o1777}, layerEntry{name: "closed/", mode: 0o2050}, layerEntry{name: "closed/x"},
	))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{
		"suid": 0o755, "run": 0o555, "none": 0o401, "tmp": fs.ModeDir | fs.ModeSticky | 0o777, "closed": fs.ModeDir | 0o750,
		"closed/x": 0o644,
	} {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s is %s, want %s", name, info.Mode(), want)
		}
		if !info.IsDir() && info.ModTime().Unix() != 1_700_000_000 {
			t.Errorf("%s is of %s", name, info.ModTime())
		}
	}
}

// Entries that lead out of the root, devices and oversized images are refused.
//
// hardening: C1, C3, C5, C6, C7, C8
func TestUnpackRefuses(t *testing.T) {
	big := Limits{}
	tests := map[string]struct {
		entries []layerEntry
		limits  Limits
		want    errcode.Code
		word    string
	}{
		"up":                   {[]layerEntry{{name: "../neighbor", data: "x"}}, big, ErrUnsafeImage, "../neighbor"},
		"up in the middle":     {[]layerEntry{{name: "a/../../neighbor", data: "x"}}, big, ErrUnsafeImage, "a/.."},
		"up that stays within": {[]layerEntry{{name: "a/../b", data: "x"}}, big, ErrUnsafeImage, "a/../b"},
		"up at the end":        {[]layerEntry{{name: "a/..", data: "x"}}, big, ErrUnsafeImage, "a/.."},
		"not UTF-8":            {[]layerEntry{{name: "a\xff", data: "x"}}, big, ErrUnsafeImage, "name"},
		"a long name": {
			[]layerEntry{{name: strings.Repeat("n", 300), data: "x"}}, big, ErrUnsafeImage, "is not a valid file name",
		},
		"character device": {[]layerEntry{{name: "a/kmem", kind: tar.TypeChar}}, big, ErrUnsafeImage, "device"},
		"block device":     {[]layerEntry{{name: "sda", kind: tar.TypeBlock}}, big, ErrUnsafeImage, "device"},
		"device behind a link": {
			[]layerEntry{{name: "d", link: "dev", kind: tar.TypeSymlink}, {name: "d/sda", kind: tar.TypeBlock}}, big,
			ErrUnsafeImage, "device",
		},
		"named pipe":      {[]layerEntry{{name: "p", kind: tar.TypeFifo}}, big, ErrUnsafeImage, "named pipe"},
		"an unknown kind": {[]layerEntry{{name: "q", kind: 'Q'}}, big, ErrUnsafeImage, "type"},
		"hard link out": {
			[]layerEntry{{name: "h", link: "../neighbor", kind: tar.TypeLink}}, big, ErrUnsafeImage, "../neighbor",
		},
		"hard link to the host": {
			[]layerEntry{{name: "h", link: "/etc/passwd", kind: tar.TypeLink}}, big, oci.ErrBrokenLayer, "/etc/passwd",
		},
		"hard link behind a link": {
			[]layerEntry{{name: "l", link: "../..", kind: tar.TypeSymlink}, {name: "h", link: "l/neighbor", kind: tar.TypeLink}},
			big, oci.ErrBrokenLayer, "l/neighbor",
		},
		"hard link to a folder": {
			[]layerEntry{{name: "d/"}, {name: "h", link: "d", kind: tar.TypeLink}}, big, ErrUnsafeImage, "not a file",
		},
		"hard link without a name": {[]layerEntry{{name: "h", kind: tar.TypeLink}}, big, ErrUnsafeImage, "name"},
		"symbolic link to nothing": {[]layerEntry{{name: "l", kind: tar.TypeSymlink}}, big, ErrUnsafeImage, "leads to"},
		"a circle of links": {[]layerEntry{
			{name: "a", link: "b", kind: tar.TypeSymlink}, {name: "b", link: "a", kind: tar.TypeSymlink}, {name: "a/x"},
		}, big, ErrUnsafeImage, "symbolic links"},
		"a file as a folder": {
			[]layerEntry{{name: "a", data: "x"}, {name: "a/b"}}, big, oci.ErrBrokenLayer, "a folder in one entry",
		},
		"whiteout of the folder above": {[]layerEntry{{name: "d/"}, {name: "d/.wh..."}}, big, ErrUnsafeImage, "whiteout"},
		"whiteout of the folder":       {[]layerEntry{{name: "d/"}, {name: "d/.wh.."}}, big, ErrUnsafeImage, "whiteout"},
		"whiteout of nothing":          {[]layerEntry{{name: ".wh."}}, big, ErrUnsafeImage, "whiteout"},
		"a file in a whiteout":         {[]layerEntry{{name: ".wh.d/x"}}, big, ErrUnsafeImage, "is inside a whiteout"},
		"entries": {
			[]layerEntry{{name: "a"}, {name: "b"}, {name: "c"}}, Limits{Entries: 2}, ErrImageTooLarge, "more than 2 entries",
		},
		"headers": {
			[]layerEntry{{name: strings.Repeat("n/", 40) + "n"}}, Limits{Headers: 80, Depth: 99}, ErrImageTooLarge, "headers",
		},
		"depth": {[]layerEntry{{name: strings.Repeat("n/", 65) + "n"}}, big, ErrImageTooLarge, "65 folders"},
		"bytes": {
			[]layerEntry{{name: "a", data: strings.Repeat("x", 4000)}}, Limits{Bytes: 3000}, ErrImageTooLarge, "3000 bytes",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := unpackLayers(t, storetest.New(t), test.limits, layerOf(t, test.entries...))
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.word) {
				t.Errorf("got %v, want %s with %q", err, test.want.Name, test.word)
			}
		})
	}
}

// What would lead out in a careless unpacker, and is harmless in this one.
//
// hardening: C8
func TestUnpackStaysWithin(t *testing.T) {
	link := func(name, to string) layerEntry { return layerEntry{name: name, link: to, kind: tar.TypeSymlink} }
	tests := map[string][]layerEntry{
		"a file behind a link up":        {link("d", "../.."), {name: "d/neighbor", data: "x"}},
		"a file behind an absolute link": {link("d", "/tmp"), {name: "d/neighbor", data: "x"}},
		"a file behind two links":        {link("a", ".."), link("b", "a/.."), {name: "b/neighbor", data: "x"}},
		"a folder of links": {{name: "d/"}, link("d/up", ".."), link("d/out", "up/up/up/.."), {
			name: "d/out/neighbor", data: "x",
		}},
		"a file in the place of a link":  {link("f", "../neighbor"), {name: "f", data: "x"}},
		"a whiteout behind a link":       {link("d", ".."), {name: "d/.wh.neighbor"}},
		"an opaque folder behind a link": {link("d", "../.."), {name: "d/.wh..wh..opq"}},
		"permissions behind a link":      {link("d", ".."), {name: "d/", mode: 0o777}},
		"a hard link in the place of a link": {{name: "a"}, link("d", "../neighbor"), {
			name: "d", link: "a", kind: tar.TypeLink,
		}},
		"a link that is moved by a hard link": {
			{name: "a/b/c/"}, link("a/b/c/l", "../../.."), {name: "l", link: "a/b/c/l", kind: tar.TypeLink},
			{name: "l/neighbor", data: "x"},
		},
		"separators of Windows":      {{name: `..\..\neighbor`, data: "x"}, {name: `a\..\..\neighbor`, data: "x"}},
		"a drive of Windows":         {{name: `C:\neighbor`, data: "x"}, {name: "C:neighbor", data: "x"}},
		"a network share of Windows": {{name: `\\host\share\neighbor`, data: "x"}},
		"a stream of NTFS":           {{name: "file:stream", data: "x"}, {name: "file::$DATA", data: "x"}},
		"a device of DOS": {{name: "CON", data: "x"}, {name: "aux.txt", data: "x"}, {
			name: "lpt1", data: "x",
		}},
		"a link with separators of Windows": {link("l", `..\..`), {name: "l/neighbor", data: "x"}},
		"a link through a folder that changes": {{name: "a/b/"}, link("a/b/l", "../.."), link("a", "."), {
			name: "a/b/l/neighbor", data: "x",
		}},
	}
	for name, entries := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := unpackLayers(t, storetest.New(t), Limits{}, layerOf(t, entries...)); err != nil {
				t.Error(err)
			}
		})
	}
}

// A truncated or damaged layer, or one with another compression than declared, fails with
// an error that names the author's fault. A decompression bomb fails at the limit.
func TestUnpackBrokenLayers(t *testing.T) {
	whole := layerOf(t, layerEntry{name: "a", data: strings.Repeat("x", 4000)})
	_, bomb := ocitest.GzipLayer(t, image.File{Path: "zeros", Data: make([]byte, 32<<20)})

	tests := map[string]struct {
		data      []byte
		mediaType oci.MediaType
		want      errcode.Code
	}{
		"truncated":   {whole[:1000], oci.MediaTypeOCILayer, oci.ErrBrokenLayer},
		"no tar":      {ocitest.Noise(2000), oci.MediaTypeOCILayer, oci.ErrNotATar},
		"compression": {whole, oci.MediaTypeOCILayerGzip, oci.ErrCompressionMismatch},
		"a bomb":      {bomb, oci.MediaTypeOCILayerGzip, ErrImageTooLarge},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			store := storetest.New(t)
			d, err := store.PutBytes(t.Context(), test.data)
			if err != nil {
				t.Fatal(err)
			}
			image := RuntimeImage{Layers: []oci.Descriptor{{MediaType: test.mediaType, Digest: d, Size: int64(len(test.data))}}}
			if _, err := RootFS(t.Context(), store, image, t.TempDir(), Limits{}); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %s", err, test.want.Name)
			}
		})
	}
}

// Both encodings of sparse files are refused.
//
// hardening: C4
func TestUnpackRefusesSparseFiles(t *testing.T) {
	pax := layerOf(t, layerEntry{name: "s", data: "0\n" + strings.Repeat("\x00", 510), records: map[string]string{
		"XNU.sparse.major": "1", "XNU.sparse.minor": "0",
	}})
	pax = bytes.ReplaceAll(pax, []byte("XNU.sparse"), []byte("GNU.sparse"))
	gnu := layerOf(t, layerEntry{name: "s"})
	copy(gnu[257:], "ustar  \x00")
	gnu[156] = tar.TypeGNUSparse
	copy(gnu[148:], "        ")
	sum := 0
	for _, b := range gnu[:512] {
		sum += int(b)
	}
	copy(gnu[148:], fmt.Sprintf("%06o\x00 ", sum))
	for name, layer := range map[string][]byte{"pax": pax, "gnu": gnu} {
		if _, err := unpackLayers(t, storetest.New(t), Limits{}, layer); !errors.Is(err, ErrUnsafeImage) ||
			!strings.Contains(err.Error(), "sparse") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestUnpackWithoutTheLayer(t *testing.T) {
	image := RuntimeImage{Layers: []oci.Descriptor{{
		MediaType: oci.MediaTypeOCILayer, Digest: oci.DigestOf([]byte("x")), Size: 1,
	}}}
	_, err := RootFS(t.Context(), storetest.New(t), image, t.TempDir(), Limits{})
	ocitest.WantCode(t, err, oci.ErrBlobNotFound)
	_, err = RootFS(t.Context(), storetest.New(t), image, filepath.Join(t.TempDir(), "absent"), Limits{})
	ocitest.WantCode(t, err, ErrImageWrite)
}

func TestUnpackEndsWithItsContext(t *testing.T) {
	store, layer := storetest.New(t), layerOf(t, layerEntry{name: "a"})
	d, err := store.PutBytes(t.Context(), layer)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	image := RuntimeImage{Layers: []oci.Descriptor{{MediaType: oci.MediaTypeOCILayer, Digest: d, Size: int64(len(layer))}}}
	if _, err := RootFS(ctx, store, image, t.TempDir(), Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(layerOf(f, layerEntry{name: "a/"}, layerEntry{name: "a/l", link: "../..", kind: tar.TypeSymlink}, layerEntry{
		name: "a/l/x", data: "x",
	}), []byte{})
	f.Add(
		layerOf(f, layerEntry{name: "a", data: "x"}, layerEntry{name: "b", link: "a", kind: tar.TypeLink}),
		layerOf(f, layerEntry{name: ".wh.a"}, layerEntry{name: ".wh..wh..opq"}),
	)
	f.Fuzz(func(t *testing.T, lower, upper []byte) {
		p := newPlace(t)
		root, err := os.OpenRoot(p.root)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		u := &unpacker{root: root, limits: Limits{Bytes: 1 << 20, Entries: 500}.withDefaults()}
		for _, layer := range [][]byte{lower, upper} {
			err := u.tar(&budgetReader{r: bytes.NewReader(layer), u: u, most: 1 << 20})
			if err != nil && !errcode.Known(err) {
				t.Errorf("not a failure: %v", err)
			}
			if errors.Is(err, ErrImageWrite) {
				t.Errorf("the image is blamed on the disk: %v", err)
			}
		}
		p.check(t)
	})
}
