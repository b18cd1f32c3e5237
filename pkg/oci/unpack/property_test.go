package unpack

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"testing"

	"pgregory.net/rapid"
)

// No entries, in any order, write outside of the root.
//
// hardening: C5
func TestUnpackIsConfined(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "b", "c", "dev", ".wh.a", ".wh.b", ".wh..wh..opq"})
	target := rapid.SampledFrom([]string{
		"a", "b", "..", "../..", "/", "/a/b", "a/../..", "b/../../c", "../neighbor", "/tmp", "./", "a/b/../../../neighbor",
	})
	rapid.Check(t, func(rt *rapid.T) {
		p := newPlace(t)
		root, err := os.OpenRoot(p.root)
		if err != nil {
			rt.Fatal(err)
		}
		defer root.Close()
		u := &unpacker{root: root, limits: Limits{}.withDefaults()}
		for range rapid.IntRange(1, 3).Draw(rt, "layers") {
			var layer []layerEntry
			for range rapid.IntRange(0, 8).Draw(rt, "entries") {
				name := part.Draw(rt, "part")
				for range rapid.IntRange(0, 3).Draw(rt, "depth") {
					name += "/" + part.Draw(rt, "part")
				}
				e := layerEntry{name: name, mode: rapid.SampledFrom([]int64{0o4755, 0o600, 0}).Draw(rt, "mode")}
				switch e.kind = rapid.SampledFrom([]byte{tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeLink}).
					Draw(rt, "kind"); e.kind {
				case tar.TypeReg:
					e.data = "data"
				case tar.TypeSymlink, tar.TypeLink:
					e.link = target.Draw(rt, "target")
				}
				layer = append(layer, e)
			}
			raw := layerOf(t, layer...)
			if err := u.tar(&budgetReader{r: bytes.NewReader(raw), u: u, most: 1 << 20}); errors.Is(err, ErrImageWrite) {
				rt.Fatal(err)
			}
		}
		p.check(rt)
	})
}
