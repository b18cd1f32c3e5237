package protocol

import (
	"slices"
	"strconv"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry/storage"
)

// TestPagesOfReferrers reads a long list in pages, while an entry is removed and another one is added.
func TestPagesOfReferrers(t *testing.T) {
	t.Parallel()
	var all []storage.Descriptor
	for i := range 20 {
		all = append(all, storage.Descriptor{
			MediaType: "application/example", Digest: storage.DigestOf([]byte(strconv.Itoa(i)), ""),
		})
	}
	if whole, next := page(all, "", 1<<20); next != "" ||
		!slices.EqualFunc(whole, all, func(a, b storage.Descriptor) bool { return a.Digest == b.Digest }) {
		t.Errorf("one page has another order, or is followed by %q", next)
	}
	for _, most := range []int{1, 200, 1000} {
		seen := map[storage.Digest]int{}
		rest := slices.Clone(all)
		first, last := page(rest, "", most)
		for _, d := range first {
			seen[d.Digest]++
		}
		rest = append(
			slices.DeleteFunc(rest, func(d storage.Descriptor) bool { return d.Digest == last }),
			storage.Descriptor{Digest: "sha256:0"},
		)
		for last != "" {
			var part []storage.Descriptor
			part, last = page(rest, last, most)
			for _, d := range part {
				seen[d.Digest]++
			}
		}
		for _, d := range all {
			if seen[d.Digest] != 1 {
				t.Errorf("pages of %d bytes have %s %d times", most, d.Digest, seen[d.Digest])
			}
		}
	}
}
