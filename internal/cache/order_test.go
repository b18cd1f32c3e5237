package cache

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// d returns the digest of a letter, and entry something of it that was used some hours
// ago.
func d(name string) oci.Digest { return oci.DigestOf([]byte(name)) }

func entry(now time.Time, name, derived string, hours float64) store.Entry {
	return store.Entry{
		Digest: d(name), Name: derived, Size: 1, LastUsed: now.Add(-time.Duration(hours * float64(time.Hour))),
	}
}

func TestCandidates(t *testing.T) {
	now := newClock().now
	at := func(name, derived string, hours float64) store.Entry { return entry(now, name, derived, hours) }
	a := []store.Entry{at("A", "", 9), at("A", "index", 9), at("a", "", 9), at("A", "about", 9)}
	b := []store.Entry{at("B", "", 8), at("b", "", 8)}
	docs := map[oci.Digest][]oci.Digest{d("A"): {d("a")}, d("B"): {d("b")}}
	tests := map[string]struct {
		s    snapshot
		want []string
	}{
		"OldestPackageFirstItsRootLast": {
			snapshot{entries: append(b, a...), docs: docs},
			[]string{"A/about", "A/index", "a", "A", "b", "B"},
		},
		"OneUseIsAUseOfAll": {
			snapshot{entries: append(append([]store.Entry{at("A", "objects", 1)}, a...), b...), docs: docs},
			[]string{"b", "B", "A/about", "A/index", "A/objects", "a", "A"},
		},
		"RecentStays": {
			snapshot{entries: append(append([]store.Entry{at("A", "objects", 0.1)}, a...), b...), docs: docs},
			[]string{"b", "B"},
		},
		"FutureStays": {
			snapshot{entries: append([]store.Entry{at("C", "", -0.5)}, b...), docs: docs},
			[]string{"b", "B"},
		},
		"UsedStaysButForWhatCanBeComputed": {
			snapshot{entries: append(a, b...), docs: docs, owners: map[oci.Digest][]string{d("A"): {"cluster"}}},
			[]string{"b", "B", "A/about", "A/index"},
		},
		"NamedStaysButForWhatCanBeComputed": {
			snapshot{entries: append(a, b...), docs: docs, names: map[oci.Digest][]string{d("B"): {"pkg"}}},
			[]string{"A/about", "A/index", "a", "A"},
		},
		"UsedAndRecentStaysWhole": {
			snapshot{
				entries: []store.Entry{at("B", "", 0.1), at("b", "", 8), at("B", "index", 8)}, docs: docs,
				owners: map[oci.Digest][]string{d("B"): {"cluster"}},
			},
			nil,
		},
		"SharedWithUsedStays": {
			snapshot{
				entries: []store.Entry{at("A", "", 9), at("B", "", 8), at("x", "", 9)},
				docs:    map[oci.Digest][]oci.Digest{d("A"): {d("x")}, d("B"): {d("x")}},
				owners:  map[oci.Digest][]string{d("B"): {"cluster"}},
			},
			[]string{"A"},
		},
		"SharedGoesWithTheLast": {
			snapshot{
				entries: []store.Entry{at("A", "", 9), at("B", "", 8), at("x", "", 20)},
				docs:    map[oci.Digest][]oci.Digest{d("A"): {d("x")}, d("B"): {d("x")}},
			},
			[]string{"A", "x", "B"},
		},
		"IndexAfterItsImages": {
			snapshot{
				entries: []store.Entry{at("I", "", 9), at("A", "", 9), at("a", "", 9), at("A", "index", 9)},
				docs:    map[oci.Digest][]oci.Digest{d("I"): {d("A")}, d("A"): {d("a")}},
			},
			[]string{"A/index", "a", "A", "I"},
		},
		"ImageOfAnIndexIsUsed": {
			snapshot{
				entries: []store.Entry{at("I", "", 9), at("A", "", 9), at("a", "", 9)},
				docs:    map[oci.Digest][]oci.Digest{d("I"): {d("A")}, d("A"): {d("a")}},
				owners:  map[oci.Digest][]string{d("A"): {"cluster"}},
			},
			[]string{"I"},
		},
		"WithoutItsManifest": {
			snapshot{entries: []store.Entry{at("a", "", 9), at("z", "proof", 7)}},
			[]string{"a", "z/proof"},
		},
		"NamedWithoutItsManifestStays": {
			snapshot{
				entries: []store.Entry{at("a", "", 9)},
				names:   map[oci.Digest][]string{d("A"): {"pkg"}},
				parts:   map[oci.Digest][]oci.Digest{d("A"): {d("A"), d("a")}},
			},
			nil,
		},
		"NobodyKnowsWhen": {
			snapshot{entries: []store.Entry{at("a", "", 9), {Digest: d("b")}}},
			[]string{"b", "a"},
		},
	}
	letters := map[oci.Digest]string{}
	for c := 'A'; c <= 'z'; c++ {
		letters[d(string(c))] = string(c)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.s.now = now
			var got []string
			for _, c := range candidates(&tc.s, tc.s.holdings()) {
				text := letters[c.Digest]
				if c.IsDerived() {
					text = fmt.Sprintf("%s/%s", text, c.Name)
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
