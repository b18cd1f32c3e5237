package resolver_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/solver"
)

// graph is the graph of real packages as it was published.
type graph struct {
	Aliases map[string]struct {
		Package *string `json:"package"`
	} `json:"aliases"`
	Packages map[string]struct {
		Kind     string `json:"kind"`
		Versions map[string]struct {
			Deps []struct{ Ref, Version string } `json:"deps"`
		} `json:"versions"`
	} `json:"packages"`
}

// published is the graph in a registry that makes a package when it is asked for it,
// and at the same time a source for the solver itself.
type published struct {
	address string
	kinds   map[string]string
	// needs are by repository and tag.
	needs map[string]map[string][]dependency.Dependency

	mu    sync.Mutex
	blobs map[string][]byte
}

var errMissing = errcode.Code{Name: "RepositoryNotFound", Class: errcode.NotFound}

// Versions implements solve.Source.
func (p *published) Versions(pkg string) ([]string, error) {
	tags, ok := p.needs[pkg]
	if !ok {
		return nil, errMissing.New(nil, "there is no repository %s", pkg)
	}
	var out []string
	for tag := range tags {
		out = append(out, tag)
	}
	return out, nil
}

// Dependencies implements solve.Source.
func (p *published) Dependencies(pkg, tag string) ([]dependency.Dependency, error) {
	deps, ok := p.needs[pkg][tag]
	if !ok {
		return nil, errMissing.New(nil, "there is no tag %s of %s", tag, pkg)
	}
	return deps, nil
}

// repository is where the registry has a package of the graph.
func (p *published) repository(id string) string {
	return p.address + "/" + strings.ToLower(strings.ReplaceAll(id, "#", "/"))
}

func publishCorpus(t *testing.T) *published {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(corpus.Dir(t), "graph", "graph.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g graph
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	p := &published{
		kinds: map[string]string{}, needs: map[string]map[string][]dependency.Dependency{}, blobs: map[string][]byte{},
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.address = strings.TrimPrefix(server.URL, "http://")
	for id, pkg := range g.Packages {
		repository := p.repository(id)
		p.kinds[repository], p.needs[repository] = pkg.Kind, map[string][]dependency.Dependency{}
		for tag, v := range pkg.Versions {
			if strings.Contains(tag, "+") {
				continue // No registry can have such a tag.
			}
			var deps []dependency.Dependency
			for _, d := range v.Deps {
				to := p.address + "/nobody/" + strings.NewReplacer(":", "-", "@", "-").Replace(strings.ToLower(d.Ref))
				if a, ok := g.Aliases[d.Ref]; ok && a.Package != nil {
					to = p.repository(*a.Package)
				}
				deps = append(deps, dependency.Dependency{Package: to, Constraint: cmp.Or(d.Version, "*")})
			}
			p.needs[repository][tag] = deps
		}
	}
	return p
}

// ServeHTTP is as much of a registry as reading needs.
func (p *published) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/v2/")
	if _, digest, ok := strings.Cut(path, "/blobs/"); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		_, _ = w.Write(p.blobs[digest])
		return
	}
	if name, ok := strings.CutSuffix(path, "/tags/list"); ok {
		tags, err := p.Versions(p.address + "/" + name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"name": name, "tags": tags})
		return
	}
	name, tag, _ := strings.Cut(path, "/manifests/")
	deps, err := p.Dependencies(p.address+"/"+name, tag)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	manifest, err := p.build(r, p.address+"/"+name, tag, deps)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", string(oci.MediaTypeOCIManifest))
	_, _ = w.Write(manifest)
}

// build makes a package and keeps its layer.
func (p *published) build(r *http.Request, repository, tag string, deps []dependency.Dependency) ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"apiVersion: meta.pkg.crossplane.io/v1\nkind: %s\nmetadata: {name: %s, annotations: {tag: %q}}\nspec:\n  dependsOn:\n",
		p.kinds[repository], strings.ReplaceAll(filepath.Base(repository), "_", "-"), tag,
	)
	for _, d := range deps {
		fmt.Fprintf(&b, "  - {provider: %q, version: %q}\n", d.Package, d.Constraint)
	}
	image, err := image.Build(r.Context(), image.Input{PackageYAML: []byte(b.String())})
	if err != nil {
		return nil, err
	}
	raw, doc, err := oci.ReadDocument(r.Context(), image, image.Root(), oci.Limits{})
	if err != nil {
		return nil, err
	}
	for _, layer := range doc.Layers {
		blob, err := image.Open(r.Context(), layer)
		if err != nil {
			return nil, err
		}
		data := make([]byte, layer.Size)
		if _, err := blob.Read(data); err != nil {
			return nil, err
		}
		p.mu.Lock()
		p.blobs[layer.Digest.String()] = data
		p.mu.Unlock()
	}
	return raw, nil
}

// Real packages in a registry are resolved like the same packages in memory: the same
// versions, or the same explanation.
func TestCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("resolves dozens of real packages")
	}
	p := publishCorpus(t)
	var outcomes struct {
		Roots []struct{ Root, Version string }
		Pairs []struct{ Roots []string }
	}
	raw, err := os.ReadFile(filepath.Join(corpus.Dir(t), "graph", "outcomes.json"))
	if err == nil {
		err = json.Unmarshal(raw, &outcomes)
	}
	if err != nil {
		t.Fatal(err)
	}
	var samples [][]string
	for i := 0; i < len(outcomes.Roots); i += 8 {
		samples = append(samples, []string{outcomes.Roots[i].Root + "@" + outcomes.Roots[i].Version})
	}
	for i := 0; i < len(outcomes.Pairs); i += 20 {
		samples = append(samples, outcomes.Pairs[i].Roots)
	}
	res := newResolver(t, nil)
	solved := 0
	for _, sample := range samples {
		var q resolver.Request
		problem := solver.Problem{Source: p}
		for _, root := range sample {
			at := strings.LastIndex(root, "@")
			x := dependency.Root{Package: p.repository(root[:at]), Constraint: root[at+1:], Exact: true, By: "the platform"}
			q.Roots = append(q.Roots, x)
			problem.Roots = append(problem.Roots, dependency.Root{
				Package: x.Package, Constraint: x.Constraint, Exact: true, By: x.By,
			})
		}
		if slices.ContainsFunc(q.Roots, func(r dependency.Root) bool { return strings.Contains(r.Constraint, "+") }) {
			continue
		}
		want, wantErr := solver.Solve(problem)
		got, gotErr := res.Resolve(t.Context(), q)
		if wantErr == nil && gotErr == nil {
			solved++
		}
		if is, should := outcome(got.File, gotErr), picks(want, wantErr); is != should {
			t.Errorf("%v:\n%s\nand the solver itself\n%s", sample, is, should)
		}
	}
	t.Logf("%d of %d solved", solved, len(samples))
	if solved == 0 || solved == len(samples) {
		t.Error("the sample does not test what it should")
	}
}

func outcome(f lockfile.File, err error) string {
	if err != nil {
		return words(err)
	}
	var b strings.Builder
	for _, p := range f.Packages {
		fmt.Fprintln(&b, p.Repository, p.Version)
	}
	return b.String()
}

func picks(s solver.Solution, err error) string {
	if err != nil {
		return words(err)
	}
	var b strings.Builder
	for _, p := range s.Picks {
		fmt.Fprintln(&b, p.Package, p.Tag)
	}
	return b.String()
}

func words(err error) string {
	var c *solver.Conflict
	if errors.As(err, &c) {
		return c.Explanation.String()
	}
	return err.Error()
}
