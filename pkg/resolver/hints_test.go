package resolver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// hintMap are hints by repository. It records the packages of solutions.
type hintMap map[string][]dependency.Dependency

func (h hintMap) Dependencies(_ context.Context, repository, _ string) []dependency.Dependency {
	return h[repository]
}

func (h hintMap) Remember(_ context.Context, packages []lockfile.Package) {
	for _, p := range packages {
		h[p.Repository] = p.Dependencies
	}
}

// world is a registry in memory that records the requests.
type world struct {
	versions map[string]map[string][]dependency.Dependency
	// broken are the references whose requests fail.
	broken map[string]bool

	mu       sync.Mutex
	requests []string
}

func (w *world) ask(what string, ref oci.Reference) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, what+" "+ref.String())
	if w.broken[ref.String()] {
		return errcode.Unknown.New(nil, "%s is broken", ref)
	}
	return nil
}

// twice returns a request since the last call of hosts that was sent twice and does not fail.
func (w *world) twice() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, r := range w.requests {
		_, text, _ := strings.Cut(r, " ")
		name, tag, _ := strings.Cut(text, ":")
		if _, exists := w.versions[name][tag]; !w.broken[text] && (exists || tag == "" && w.versions[name] != nil) &&
			slices.Contains(w.requests[:i], r) {
			return r
		}
	}
	return ""
}

// hosts returns the hosts of all requests since the last call.
func (w *world) hosts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := map[string]bool{}
	for _, r := range w.requests {
		_, name, _ := strings.Cut(r, " ")
		host, _, _ := strings.Cut(name, "/")
		found[host] = true
	}
	w.requests = nil
	return slices.Sorted(maps.Keys(found))
}

func (w *world) Location(_ context.Context, ref oci.Reference) (string, error) {
	return ref.Name(), nil
}

func (w *world) Versions(_ context.Context, ref oci.Reference) (resolver.Versions, error) {
	if err := w.ask("tags", ref); err != nil {
		return resolver.Versions{}, err
	}
	tags, ok := w.versions[ref.Name()]
	if !ok {
		return resolver.Versions{}, remote.ErrRepositoryNotFound.New(nil, "there is no %s", ref.Name())
	}
	return resolver.Versions{Tags: slices.Sorted(maps.Keys(tags)), From: ref}, nil
}

func (*world) Status(context.Context, oci.Reference, []string) (*catalog.Status, error) {
	return nil, nil
}

func (w *world) Metadata(_ context.Context, ref oci.Reference) (resolver.Metadata, error) {
	if err := w.ask("metadata", ref); err != nil {
		return resolver.Metadata{}, err
	}
	needs, ok := w.versions[ref.Name()][ref.Tag]
	if !ok {
		return resolver.Metadata{}, remote.ErrTagNotFound.New(nil, "there is no %s", ref)
	}
	stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: x}\nspec:\n  dependsOn:\n"
	for _, d := range needs {
		stream += fmt.Sprintf(
			"  - {apiVersion: pkg.crossplane.io/v1, kind: Configuration, package: %q, version: %q}\n", d.Package, d.Constraint,
		)
	}
	meta, err := xpkg.ReadMeta([]byte(stream), xpkg.ReadOptions{Policy: xpkg.PolicyInstall()})
	return resolver.Metadata{Digest: oci.DigestOf([]byte(ref.String())), Meta: meta}, err
}

func (w *world) Verify(context.Context, oci.Reference, oci.Digest) (resolver.Metadata, error) {
	return resolver.Metadata{}, errcode.Unknown.New(nil, "nothing is claimed")
}

// outcome returns everything that a resolution returns, as text.
func (w *world) outcome(t testing.TB, hints resolver.Hints, q resolver.Request) string {
	t.Helper()
	got, err := (&resolver.Resolver{Registry: w, Hints: hints}).Resolve(t.Context(), q)
	all, marshalErr := json.MarshalIndent(got, "", " ")
	if marshalErr != nil {
		t.Fatal(marshalErr)
	}
	return fmt.Sprintf("%s\n%s\n%v", all, lockfile.Encode(got.File), err)
}

// The result of a resolution does not depend on hints, and hints cause no request to a host that the resolution does
// not read.
func TestHintsChangeNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("host%d.test/p%d", rapid.IntRange(0, 2).Draw(t, "host"), rapid.IntRange(0, 3).Draw(t, "package"))
		})
		constraint := rapid.SampledFrom([]string{"*", ">=v1.0.0", "<v3.0.0", "v1.0.0", "v2.0.0", ">=v2.0.0", "v9.0.0"})
		needs := func(names *rapid.Generator[string]) *rapid.Generator[[]dependency.Dependency] {
			return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) dependency.Dependency {
				return dependency.Dependency{Package: names.Draw(t, "name"), Constraint: constraint.Draw(t, "constraint")}
			}), 0, 3, func(d dependency.Dependency) string { return d.Package })
		}
		tag := rapid.SampledFrom([]string{"v1.0.0", "v2.0.0", "v3.0.0"})
		w := &world{
			versions: rapid.MapOfN(name, rapid.MapOfN(tag, needs(name), 1, 3), 3, 12).Draw(rt, "versions"),
			broken: rapid.MapOfN(
				rapid.Custom(func(t *rapid.T) string { return name.Draw(t, "name") + ":" + tag.Draw(t, "tag") }), rapid.Just(true),
				0, 2,
			).Draw(rt, "broken"),
		}
		lie := rapid.OneOf(name, rapid.SampledFrom([]string{
			"evil.test/p", "kind Thing.example.org", "", "no registry", "host0.test/p0:v1.0.0", "169.254.169.254/p",
		}))
		hints := hintMap(rapid.MapOfN(name, needs(lie), 0, 12).Draw(rt, "hints"))
		var q resolver.Request
		for _, d := range needs(name).Draw(rt, "roots") {
			q.Roots = append(q.Roots, dependency.Root{Package: d.Package, Constraint: d.Constraint})
		}
		for range 3 {
			want := w.outcome(t, nil, q)
			read := w.hosts()
			if got := w.outcome(t, hints, q); got != want {
				rt.Fatalf("with hints\n%s\nwant\n%s", got, want)
			}
			if r := w.twice(); r != "" {
				rt.Fatalf("%s was requested twice", r)
			}
			for _, host := range w.hosts() {
				if !slices.Contains(read, host) {
					rt.Fatalf("a hint caused a request to %s; without hints, only %q are read", host, read)
				}
			}
			// The next round has the hints of the solution, and locked packages of which some have to change.
			first, err := (&resolver.Resolver{Registry: w}).Resolve(t.Context(), q)
			if err != nil {
				break
			}
			w.hosts()
			q.Locked = first.Packages
			if len(q.Locked) > 0 {
				q.Locked = q.Locked[rapid.IntRange(0, len(q.Locked)-1).Draw(rt, "unlocked"):]
			}
			for i := range q.Roots {
				q.Roots[i].Constraint = constraint.Draw(rt, "next")
			}
		}
	})
}

// With the hints of the last resolution, all levels of a tree are read at the same time, and nothing is read twice.
func TestHintsReadAllLevelsAtOnce(t *testing.T) {
	r := newRegistry(t, 0)
	have, packages, _ := chain(6, 2)
	r.have(t, have)
	hints := hintMap{}
	resolve := func() string {
		res := newResolver(t, nil)
		res.Hints = hints
		got, err := res.Resolve(t.Context(), resolver.Request{Roots: []dependency.Root{r.root("top", "v1.0.0")}})
		if err != nil {
			t.Fatal(err)
		}
		return r.summary(got.File)
	}
	want := resolve()
	asked := r.recorded()
	// The tags of every package are requested before any of them is listed.
	var mu sync.Mutex
	lists, all := 0, make(chan struct{})
	r.does(func(_ http.ResponseWriter, req *http.Request) bool {
		if !strings.HasSuffix(req.URL.Path, "/tags/list") {
			return false
		}
		mu.Lock()
		if lists++; lists == packages-1 {
			close(all)
		}
		mu.Unlock()
		<-all
		return false
	})
	if got := resolve(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if again := r.recorded(); !slices.Equal(again, asked) {
		t.Errorf("with hints\n%q\nwant\n%q", again, asked)
	}
}
