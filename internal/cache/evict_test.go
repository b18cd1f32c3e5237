package cache

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// filled returns a cache with packages of summary 1,000 bytes each, an hour apart, and room
// for the given number of packages.
func filled(t *testing.T, clock *clock, room int, names ...string) (*Cache, map[string]oci.Digest) {
	t.Helper()
	one := open(t, t.TempDir(), Options{})
	must(t, put(t.Context(), one, image(t, "probe", 1000)))
	unit := diskSize(t, one)
	c := open(t, t.TempDir(), Options{Limit: int64(room)*unit + unit/2, Now: clock.Now})
	digests := map[string]oci.Digest{}
	for _, name := range names {
		img := image(t, name, 1000)
		must(t, put(t.Context(), c, img))
		digests[name] = img.Digest()
		clock.advance(time.Hour)
	}
	return c, digests
}

// there lists which of some packages can be read.
func there(t *testing.T, c *Cache, digests map[string]oci.Digest) string {
	t.Helper()
	var all []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if d, ok := digests[name]; ok && stream(t.Context(), c.Store().Peek(), d) == nil {
			all = append(all, name)
		}
	}
	return strings.Join(all, "")
}

// hardening: K5
func TestLeastRecentlyUsedPackageIsEvicted(t *testing.T) {
	tests := map[string]struct {
		use  func(t *testing.T, c *Cache, d map[string]oci.Digest)
		want string
	}{
		"Oldest": {func(*testing.T, *Cache, map[string]oci.Digest) {}, "bce"},
		"Read": {func(t *testing.T, c *Cache, d map[string]oci.Digest) {
			must(t, stream(t.Context(), c.Store(), d["a"]))
		}, "ace"},
		"Used": {func(t *testing.T, c *Cache, d map[string]oci.Digest) {
			must(t, c.Use("cluster", []oci.Digest{d["a"], d["b"]}))
		}, "abe"},
		"NoLongerUsed": {func(t *testing.T, c *Cache, d map[string]oci.Digest) {
			must(t, c.Use("cluster", []oci.Digest{d["a"]}))
			must(t, c.Use("cluster", []oci.Digest{d["b"]}))
			must(t, c.Use("other", []oci.Digest{d["a"]}))
			must(t, c.Use("other", nil))
		}, "bce"},
		"Open": {func(t *testing.T, c *Cache, d map[string]oci.Digest) {
			all, err := c.Store().Entries(t.Context())
			must(t, err)
			for _, e := range all {
				if e.LastUsed.Equal(newClock().now) { // a is the first.
					f, err := c.Store().Peek().Open(t.Context(), e.Digest)
					must(t, err)
					t.Cleanup(func() { _ = f.Close() })
				}
			}
		}, "ace"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			c, digests := filled(t, clock, 3, "a", "b", "c")
			tc.use(t, c, digests)
			clock.advance(time.Hour)
			img := image(t, "e", 1000)
			must(t, put(t.Context(), c, img))
			digests["e"] = img.Digest()
			if got := there(t, c, digests); got != tc.want {
				t.Errorf("%s are left, want %s", got, tc.want)
			}
			if n := diskSize(t, c); n > c.limit {
				t.Errorf("the cache has %d bytes, more than %d", n, c.limit)
			}
		})
	}
}

// hardening: K5
func TestCacheFull(t *testing.T) {
	clock := newClock()
	c, digests := filled(t, clock, 2, "a", "b")
	must(t, c.Use("cluster", []oci.Digest{digests["a"]}))
	file := filepath.Join(t.TempDir(), "b.xpkg")
	must(t, os.WriteFile(file, archive(t, image(t, "b", 1000)), 0o600))
	_, err := c.Add(t.Context(), file, "b")
	must(t, err)
	clock.advance(time.Hour)
	before := diskSize(t, c)
	err = put(t.Context(), c, image(t, "e", 3000))
	wantCode(t, err, ErrCacheFull)
	if !strings.Contains(err.Error(), "--cache-limit") {
		t.Errorf("the message does not name the flag: %v", err)
	}
	clock.advance(time.Hour)
	err = put(t.Context(), c, image(t, "d", 10_000))
	wantCode(t, err, ErrCacheFull)
	if there(t, c, digests) != "ab" || diskSize(t, c) > before+1000 {
		t.Errorf("%s are left with %d bytes", there(t, c, digests), diskSize(t, c))
	}
	// Content without a use can be evicted.
	must(t, c.Use("cluster", nil))
	must(t, put(t.Context(), c, image(t, "e", 1000)))
	if got := there(t, c, digests); got != "b" {
		t.Errorf("%s are left", got)
	}
}

// A package that has just been fetched is not evicted for the next one; later it is.
func TestCacheBusy(t *testing.T) {
	clock := newClock()
	c, digests := filled(t, clock, 2)
	for _, name := range []string{"a", "b"} {
		img := image(t, name, 1000)
		must(t, put(t.Context(), c, img))
		digests[name] = img.Digest()
	}
	wantCode(t, put(t.Context(), c, image(t, "e", 1000)), ErrCacheBusy)
	if got := there(t, c, digests); got != "ab" {
		t.Errorf("%s are left", got)
	}
	clock.advance(grace)
	must(t, put(t.Context(), c, image(t, "e", 1000)))
}

// Derived data never evicts a wanted package. A package to be installed evicts the
// derived data of wanted packages if there is no other room.
func TestDerivedValuesAreEvictedFirst(t *testing.T) {
	clock := newClock()
	c, digests := filled(t, clock, 3, "a")
	key := store.DerivedKey{Digest: digests["a"], Name: "objects"}
	must(t, c.Store().PutDerived(t.Context(), key, make([]byte, 2*c.limit/3-100)))
	must(t, c.Use("cluster", []oci.Digest{digests["a"]}))
	clock.advance(time.Hour)
	big := make([]byte, c.limit/2)
	err := c.Store().PutDerived(t.Context(), store.DerivedKey{Digest: digests["a"], Name: "other"}, big)
	wantCode(t, err, ErrCacheFull)
	if _, err := c.Store().Peek().GetDerived(t.Context(), key); err != nil {
		t.Error(err)
	}
	must(t, put(t.Context(), c, image(t, "e", 1000)))
	if _, err := c.Store().GetDerived(t.Context(), key); !errors.Is(err, oci.ErrBlobNotFound) {
		t.Errorf("what can be computed again is still there: %v", err)
	}
	if got := there(t, c, digests); got != "a" {
		t.Errorf("%s are left", got)
	}
}

// What cannot be read may protect anything.
func TestDamagedRecordsRemoveNothing(t *testing.T) {
	clock := newClock()
	c, digests := filled(t, clock, 2, "a", "b")
	must(t, c.store.PutRecord(store.Record{Kind: usesKind, Name: "cluster", Data: []byte("{")}))
	wantCode(t, put(t.Context(), c, image(t, "e", 1000)), ErrDamagedRecord)
	if got := there(t, c, digests); got != "ab" {
		t.Errorf("%s are left", got)
	}
	// The owner's next word heals it.
	must(t, c.Use("cluster", []oci.Digest{digests["b"]}))
	must(t, put(t.Context(), c, image(t, "e", 1000)))
	must(t, c.store.PutRecord(store.Record{Kind: namesKind, Name: "x", Data: nil}))
	must(t, c.store.PutRecord(store.Record{Kind: namesKind, Name: "y", Data: []byte(`{"version":2}`)}))
	r, err := c.Verify(t.Context())
	must(t, err)
	if len(r.Damaged) != 2 {
		t.Errorf("verify says %+v", r.Damaged)
	}
	must(t, c.Use("cluster", nil))
	clock.advance(time.Hour)
	must(t, put(t.Context(), c, image(t, "d", 1000)))
}

// A manifest that was damaged and came back protects its layer again.
func TestDamagedManifestComesBack(t *testing.T) {
	clock := newClock()
	c, digests := filled(t, clock, 3, "a", "b")
	must(t, c.Use("cluster", []oci.Digest{digests["a"]}))
	path := filepath.Join(c.Store().Dir(), "blobs", digests["a"].Hex()[:2], digests["a"].Hex())
	whole, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, append([]byte("{ "), whole...), 0o600))
	if _, err := c.scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = c.Store().PutBytes(t.Context(), whole)
	must(t, err)
	clock.advance(time.Hour)
	must(t, put(t.Context(), c, image(t, "d", 1000)))
	clock.advance(time.Hour)
	must(t, put(t.Context(), c, image(t, "e", 1000)))
	if got := there(t, c, digests); got != "a" {
		t.Errorf("%s are left", got)
	}
}

// A smaller limit holds from the start.
func TestOpenShrinks(t *testing.T) {
	clock := newClock()
	c, digests := filled(t, clock, 3, "a", "b", "c")
	limit := c.limit / 2
	must(t, c.Close())
	c = open(t, c.Dir(), Options{Limit: limit, Now: clock.Now})
	if got := there(t, c, digests); got != "c" {
		t.Errorf("%s are left", got)
	}
	must(t, c.Use("cluster", []oci.Digest{digests["c"]}))
	must(t, c.Close())
	c = open(t, c.Dir(), Options{Limit: 1, Now: clock.Now})
	if got := there(t, c, digests); got != "c" {
		t.Errorf("%s are left", got)
	}
}

// Content in the store can either be read, or is reported missing and fetched again.
func TestEvictedIsFetchedAgain(t *testing.T) {
	clock := newClock()
	c, digests := filled(t, clock, 2, "a", "b")
	wantAgain := image(t, "a", 1000)
	// The content exists and is old. Putting it again counts as a use.
	must(t, put(t.Context(), c, wantAgain))
	must(t, put(t.Context(), c, image(t, "e", 1000)))
	if got := there(t, c, digests); got != "a" {
		t.Errorf("%s are left", got)
	}
	clock.advance(time.Hour)
	for _, name := range []string{"c", "d"} {
		must(t, put(t.Context(), c, image(t, name, 1000)))
	}
	if err := stream(t.Context(), c.Store(), digests["a"]); !errors.Is(err, oci.ErrBlobNotFound) {
		t.Errorf("got %v", err)
	}
	clock.advance(time.Hour)
	must(t, put(t.Context(), c, wantAgain))
	must(t, stream(t.Context(), c.Store(), digests["a"]))
}

func TestUses(t *testing.T) {
	c := open(t, t.TempDir(), Options{})
	must(t, c.Use("b", []oci.Digest{d("2"), d("1"), d("2")}))
	must(t, c.Use("a/../b", []oci.Digest{d("1")}))
	must(t, c.Use("gone", []oci.Digest{d("1")}))
	must(t, c.Use("gone", nil))
	must(t, c.Use("never", nil))
	must(t, c.Close())
	c = open(t, c.Dir(), Options{})
	got, err := c.uses(t.Context())
	must(t, err)
	want := []useRecord{{1, "a/../b", []oci.Digest{d("1")}, ""}, {1, "b", []oci.Digest{d("1"), d("2")}, ""}}
	if d("2").Hex() < d("1").Hex() {
		want[1].Roots = []oci.Digest{d("2"), d("1")}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(oci.Digest{})); diff != "" {
		t.Error(diff)
	}
	broken := errors.New("input/output error")
	c = open(t, c.Dir(), Options{Before: func(string) error { return broken }})
	wantCode(t, c.Use("b", []oci.Digest{d("3")}), store.ErrStoreWrite)
	// The same again writes nothing.
	must(t, c.Use("b", want[1].Roots))
}

// A cache that is opened without a limit has the limit of the manager.
func TestLimitForAll(t *testing.T) {
	dir := t.TempDir()
	limits := []struct {
		o    Options
		want int64
	}{
		{Options{}, 0},
		{Options{Limit: 5000}, 5000},
		{Options{}, 0},
		{Options{Limit: 9000, LimitForAll: true}, 9000},
		{Options{}, 9000},
		{Options{Limit: 5000}, 5000},
		{Options{}, 9000},
		{Options{Limit: 7000, LimitForAll: true}, 7000},
		{Options{}, 7000},
	}
	for i, tc := range limits {
		c := open(t, dir, tc.o)
		if c.limit != tc.want {
			t.Errorf("%d: the limit is %d, want %d", i, c.limit, tc.want)
		}
		must(t, c.Close())
	}
	c := open(t, dir, Options{})
	must(t, c.store.PutRecord(store.Record{Kind: limitKind, Data: []byte("?")}))
	must(t, c.Close())
	if c := open(t, dir, Options{}); c.limit != 0 {
		t.Errorf("the limit is %d", c.limit)
	}
}
