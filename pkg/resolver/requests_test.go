package resolver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/sourcetest"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

// tree returns a package with so many children, each with so many of their own. All have
// three versions, and the leaves, which share a dependency, need its highest.
func tree(children, grandchildren int) (have string, packages int) {
	var b strings.Builder
	var top []string
	for i := range children {
		child := fmt.Sprintf("child%02d", i)
		top = append(top, child+" >=v1")
		var needs []string
		for j := range grandchildren {
			leaf := fmt.Sprintf("leaf%02d-%02d", i, j)
			needs = append(needs, leaf+" >=v1, <v3")
			for _, tag := range []string{"v1.0.0", "v2.0.0", "v3.0.0"} {
				fmt.Fprintf(&b, "%s %s\n", leaf, tag)
			}
		}
		for _, tag := range []string{"v1.0.0", "v1.1.0", "v2.0.0"} {
			fmt.Fprintf(&b, "%s %s: %s\n", child, tag, strings.Join(needs, "; "))
		}
	}
	fmt.Fprintf(&b, "leaf v1.0.0\ntop v1.0.0: %s\n", strings.Join(top, "; "))
	return b.String(), 1 + children + children*grandchildren
}

// Each repository is listed once, and of each version that is looked at two things
// are read: its manifest and its layer.
func TestRequests(t *testing.T) {
	r := newRegistry(t, 5*time.Millisecond)
	have, packages := tree(8, 4)
	r.have(t, have)
	source := sourcetest.New(t, nil)
	res := &resolver.Resolver{Registry: fetch.NewRegistry(source, nil)}
	q := resolver.Request{Roots: []dependency.Root{r.root("top", "v1.0.0")}}
	q.Roots[0].Exact = true
	first, err := res.Resolve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Packages) != packages {
		t.Fatalf("%d packages, want %d", len(first.Packages), packages)
	}
	asked := r.recorded()
	if twice := repeated(asked); twice != "" {
		t.Errorf("asked twice: %s", twice)
	}
	lists := count(asked, "/tags/list")
	if lists != packages-1 || count(asked, "/manifests/") != packages || count(asked, "") > lists+2*packages {
		t.Errorf("%d requests for %d packages, %d of them for tags", len(asked), packages, lists)
	}
	if r.most > 50 {
		t.Errorf("%d requests at once", r.most)
	}

	source.Close() // Everything is written now.

	// Cached content is read from the cache, and a tag is resolved again.
	if _, err := res.Resolve(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if asked := r.recorded(); count(asked, "/blobs/") != 0 || len(asked) != lists+packages {
		t.Errorf("%d requests, %d of them for layers, with everything in the cache", len(asked), count(asked, "/blobs/"))
	}

	// Locked packages cause no request.
	q.Locked = first.Packages
	r.does(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusTeapot)
		return true
	})
	again, err := newResolver(t, nil).Resolve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if asked := r.recorded(); len(asked) != 0 ||
		string(lockfile.Encode(again.File)) != string(lockfile.Encode(first.File)) {
		t.Errorf("%q were asked for, and there is %s", asked, r.summary(again.File))
	}
}

// A search that goes down through the versions of a package reads ahead, twice as far
// each time, and never much more than it needs.
func TestBacktrackingReadsAhead(t *testing.T) {
	r := newRegistry(t, 0)
	var b strings.Builder
	const versions = 60
	for i := range versions {
		fmt.Fprintf(&b, "top v1.%d.0: base v%d\n", i, min(i, 20)+1)
	}
	fmt.Fprint(&b, "base v1.0.0\n")
	r.have(t, b.String())
	got, err := newResolver(t, nil).Resolve(t.Context(), resolver.Request{Roots: []dependency.Root{r.root("top", "*")}})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.summary(got.File); s != "base v1.0.0; top v1.0.0" {
		t.Fatal(s)
	}
	asked := r.recorded()
	if twice := repeated(asked); twice != "" {
		t.Errorf("asked twice: %s", twice)
	}
	if n := count(asked, "/top/manifests/"); n != versions {
		t.Errorf("%d versions were read", n)
	}
}

// The same is asked for, whatever is quick and whatever is slow.
func TestRequestsDoNotDependOnTime(t *testing.T) {
	have := `top v1.0.0: a >=v1; b >=v1
a v1.0.0: c v1
a v1.1.0: c v2
a v1.2.0: c v3
a v1.3.0: c v4
b v1.0.0: c v1; d >=v1
c v1.0.0
c v2.0.0
c v3.0.0
c v4.0.0
d v1.0.0`
	r := newRegistry(t, 0)
	r.have(t, have)
	var want []string
	for i, slow := range []string{"", "/a/", "/b/", "/c/", "/d/", "/tags/"} {
		r.does(func(_ http.ResponseWriter, req *http.Request) bool {
			if slow != "" && strings.Contains(req.URL.Path, slow) {
				r.pauseFor(req.Context(), 5*time.Millisecond)
			}
			return false
		})
		got, err := newResolver(t, nil).Resolve(t.Context(), resolver.Request{Roots: []dependency.Root{r.root("top", "*")}})
		if err != nil {
			t.Fatal(err)
		}
		asked := append(r.recorded(), string(lockfile.Encode(got.File)))
		if i == 0 {
			want = asked
		}
		if !slices.Equal(asked, want) {
			t.Errorf("with a slow %s\n%q\nwant\n%q", slow, asked, want)
		}
	}
}

// Whatever the order and the speed of the answers, the lock file is the same bytes.
func TestLockIsTheSameBytes(t *testing.T) {
	r := newRegistry(t, 0)
	have, _ := tree(3, 3)
	r.have(t, have)
	var want []byte
	for i := range 8 {
		random := rand.New(rand.NewPCG(uint64(i), 0))
		var mu sync.Mutex
		r.does(func(w http.ResponseWriter, req *http.Request) bool {
			mu.Lock()
			pause := time.Duration(random.IntN(3)) * time.Millisecond
			mu.Unlock()
			r.pauseFor(req.Context(), pause)
			if !strings.HasPrefix(req.URL.Path, "/v2/leaf") || !strings.HasSuffix(req.URL.Path, "/tags/list") {
				return false
			}
			tags := []string{"v1.0.0", "v2.0.0", "v3.0.0"}
			mu.Lock()
			random.Shuffle(len(tags), func(i, j int) { tags[i], tags[j] = tags[j], tags[i] })
			mu.Unlock()
			_ = json.NewEncoder(w).Encode(map[string]any{"tags": tags})
			return true
		})
		q := resolver.Request{Roots: []dependency.Root{r.root("child02", "*"), r.root("top", "*"), r.root("child00", "<v2")}}
		random.Shuffle(len(q.Roots), func(i, j int) { q.Roots[i], q.Roots[j] = q.Roots[j], q.Roots[i] })
		got, err := newResolver(t, nil).Resolve(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		text := lockfile.Encode(got.File)
		if i == 0 {
			want = text
		}
		if !bytes.Equal(text, want) {
			t.Fatalf("%s\nand then\n%s", want, text)
		}
	}
}

func count(asked []string, part string) int {
	n := 0
	for _, a := range asked {
		if strings.Contains(a, part) {
			n++
		}
	}
	return n
}

func repeated(sorted []string) string {
	for i := range sorted {
		if i > 0 && sorted[i] == sorted[i-1] && !strings.Contains(sorted[i], "/blobs/") {
			return sorted[i]
		}
	}
	return ""
}

// The time to resolve a tree depends on its depth in sequential requests. It is reported
// beside the time for one package over the same network, for a root with a constraint,
// and for the sequential requests alone.
func BenchmarkDelayedRegistry(b *testing.B) {
	const delay = 30 * time.Millisecond
	wide := func(children, grandchildren int) (string, int, int) {
		have, packages := tree(children, grandchildren)
		return have, packages, 2
	}
	for _, shape := range []func() (have string, packages, depth int){
		func() (string, int, int) { return wide(4, 1) },
		func() (string, int, int) { return wide(8, 4) },
		func() (string, int, int) { return wide(16, 6) },
		func() (string, int, int) { return chain(4, 10) },
		func() (string, int, int) { return chain(10, 4) },
	} {
		have, packages, depth := shape()
		b.Run(fmt.Sprintf("%d packages, %d deep", packages, depth), func(b *testing.B) {
			r := newRegistry(b, delay)
			r.have(b, have)
			top := dependency.Root{Package: r.address + "/top", Constraint: "v1.0.0", Exact: true}
			var all, known, again, one time.Duration
			requests := 0
			for b.Loop() {
				one += timed(b, newResolver(b, nil), r.root("leaf", ">=v1"))
				r.recorded()
				all += timed(b, newResolver(b, nil), top)
				requests += len(r.recorded())
				// An index predicts the tree, and the store is empty.
				hints := hintMap{}
				res := newResolver(b, nil)
				res.Hints = hints
				timed(b, res, top)
				res = newResolver(b, nil)
				res.Hints = hints
				known += timed(b, res, top)
				// The store has the last resolution.
				source := sourcetest.New(b, nil)
				res = &resolver.Resolver{Registry: fetch.NewRegistry(source, nil), Hints: source}
				timed(b, res, top)
				source.Close()
				again += timed(b, res, top)
			}
			n := time.Duration(b.N)
			// The root has a manifest and a layer, and everything else a list as well.
			floor := time.Duration(2+3*depth) * delay
			b.ReportMetric(float64((all / n).Milliseconds()), "ms/tree")
			b.ReportMetric(float64((known / n).Milliseconds()), "ms/known")
			b.ReportMetric(float64((again / n).Milliseconds()), "ms/again")
			b.ReportMetric(float64((one / n).Milliseconds()), "ms/package")
			b.ReportMetric(float64(floor.Milliseconds()), "ms/floor")
			b.ReportMetric(float64(all)/float64(one), "ratio")
			b.ReportMetric(float64(requests)/float64(n), "requests/op")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// chain returns a package below which there are levels, each of so many packages that
// need all of the next level.
func chain(levels, width int) (have string, packages, depth int) {
	var b strings.Builder
	level := func(i int) string {
		var needs []string
		for j := range width {
			if i < levels {
				needs = append(needs, fmt.Sprintf("p%02d-%02d >=v1", i, j))
			}
		}
		return strings.Join(needs, "; ")
	}
	for i := range levels {
		for j := range width {
			fmt.Fprintf(&b, "p%02d-%02d v1.0.0: %s\n", i, j, level(i+1))
		}
	}
	fmt.Fprintf(&b, "top v1.0.0: %s\nleaf v1.0.0\n", level(0))
	return b.String(), 1 + levels*width, levels
}

func timed(b *testing.B, res *resolver.Resolver, root dependency.Root) time.Duration {
	b.Helper()
	start := time.Now()
	if _, err := res.Resolve(b.Context(), resolver.Request{Roots: []dependency.Root{root}}); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}
