package corpuscatalog

import (
	_ "embed"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

//go:embed testdata/golden.txt
var golden string

// searchGolden checks that at least 95 % of the queries have the wanted hit among the first three.
func searchGolden(t *testing.T, c *catalog.Catalog) {
	t.Helper()
	total, failed := 0, 0
	for line := range strings.Lines(golden) {
		query, want, isQuery := strings.Cut(strings.TrimSpace(line), " => ")
		if !isQuery || strings.HasPrefix(line, "#") {
			continue
		}
		total++
		q, err := catalog.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		got := hitNames(c.Search(q, 3))
		if !slices.ContainsFunc(got, func(name string) bool { ok, _ := path.Match(want, name); return ok }) {
			failed++
			t.Logf("%q: got %q, want %s", query, got, want)
		}
	}
	t.Logf("%d of %d queries have the wanted hit", total-failed, total)
	t.Attr("golden-percent", strconv.Itoa(100*(total-failed)/total))
	if total < 60 || 100*failed > 5*total {
		t.Errorf("%d of %d queries miss the wanted hit", failed, total)
	}
}

func hitNames(hits []catalog.Hit) []string {
	var out []string
	for _, h := range hits {
		name := path.Base(h.Package.Repository)
		if h.Kind != nil {
			name = h.Kind.Kind + "." + h.Kind.Group
		}
		out = append(out, name)
	}
	return out
}
