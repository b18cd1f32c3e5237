package corpuscatalog

import (
	"strconv"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// sizes are the sizes of an index in bytes.
type sizes struct{ manifest, search, whole, text int64 }

func sizesOf(m *catalog.Manifest) sizes {
	s := sizes{manifest: int64(len(m.Raw))}
	s.search = s.manifest + m.Config.Size + m.Packages.Size + m.Kinds.Size
	s.whole = s.search
	for _, d := range m.Shards {
		s.whole += d.Size
	}
	if m.Text != nil {
		s.text = m.Text.Size
	}
	return s
}

func TestIndexOfTheCorpusIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the whole corpus")
	}
	facts := Facts(t, true)
	c, err := catalog.Build(catalog.Config{Name: "corpus", Sequence: 1}, facts)
	if err != nil {
		t.Fatal(err)
	}
	image, err := catalog.Encode(&c)
	if err != nil {
		t.Fatal(err)
	}
	s := sizesOf(&image.Manifest)
	t.Logf("%+v; %+v", c.Config.Counts, s)
	for name, size := range map[string]struct{ is, most int64 }{
		"manifest": {s.manifest, 20 << 10}, "search": {s.search - s.manifest, 60 << 10}, "whole": {s.whole, 1200 << 10},
	} {
		if size.is > size.most {
			t.Errorf("%s: %d bytes, want at most %d", name, size.is, size.most)
		}
	}
	t.Attr("search-bytes", strconv.FormatInt(s.search-s.manifest, 10))
	t.Attr("whole-bytes", strconv.FormatInt(s.whole, 10))
	if n := len(image.Manifest.Layers()); n > 100 {
		t.Errorf("%d layers", n)
	}
	searchGolden(t, &c)
}
