// Package corpuscatalog describes the corpus of real packages as facts of a catalog. The corpus contains the dependency
// graph of all versions, and the content of some of them: a version without content has the kinds of the nearest lower
// version with content. Digests are synthetic, because the corpus has none.
package corpuscatalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/version"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// graph is graph/graph.json of the corpus.
type graph struct {
	Aliases  map[string]struct{ Host, Package string } `json:"aliases"`
	Packages map[string]struct {
		Kind, Name, Repo string
		Versions         map[string]struct {
			Crossplane string
			Deps       []struct{ Ref, Version string }
		}
	} `json:"packages"`
}

// Facts returns the facts of all versions in the graph. With texts, the newest content of each package has its texts.
func Facts(t testing.TB, texts bool) []catalog.Facts {
	t.Helper()
	dir := corpus.Dir(t)
	raw, err := os.ReadFile(filepath.Join(dir, "graph", "graph.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g graph
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	contents := read(t, dir, texts)
	names := repositories(&g)
	var out []catalog.Facts
	for id, p := range g.Packages {
		owner, name, _ := strings.Cut(id, "#")
		all := contents[strings.ToLower(owner+"#"+name)]
		for tag, v := range p.Versions {
			f := contentOf(all, tag)
			f.Repository = names[id]
			f.Head.Package.Repository, f.Head.Package.Type = f.Repository, p.Kind
			for i := range f.Head.Kinds {
				f.Head.Kinds[i].Repository = f.Repository
			}
			if f.Head.Text != nil {
				text := *f.Head.Text
				text.Repository = f.Repository
				f.Head.Text = &text
			}
			digest := oci.DigestOf([]byte(id + tag))
			f.Version = catalog.Version{
				Tag: tag, Digest: digest, Crossplane: v.Crossplane, Kinds: len(f.Head.Kinds),
				// A time that does not compress better than a real one.
				Created: time.Unix(1_600_000_000+int64(digest.Hex()[0])<<20+int64(digest.Hex()[1])<<12+int64(digest.Hex()[2]), 0).
					UTC(),
			}
			for _, d := range v.Deps {
				name := d.Ref
				if target, known := names[g.Aliases[d.Ref].Package]; known {
					name = target
				}
				f.Version.Dependencies = append(f.Version.Dependencies, dependency.Dependency{Package: name, Constraint: d.Version})
			}
			out = append(out, f)
		}
	}
	return out
}

// repositories returns the repository of each package: the reference that others depend on, or a name derived from the
// source.
func repositories(g *graph) map[string]string {
	out := map[string]string{}
	aliases := make([]string, 0, len(g.Aliases))
	for alias := range g.Aliases {
		aliases = append(aliases, alias)
	}
	slices.SortFunc(aliases, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	used := map[string]bool{}
	for _, alias := range aliases {
		ref, err := oci.ParseReference(alias, oci.ParseOptions{DefaultRegistry: "xpkg.upbound.io", AllowUntagged: true})
		if id := g.Aliases[alias].Package; err == nil && id != "" && out[id] == "" {
			out[id] = ref.Name()
			used[ref.Name()] = true
		}
	}
	for id := range g.Packages {
		if out[id] != "" {
			continue
		}
		source, name, _ := strings.Cut(id, "#")
		owner, project, _ := strings.Cut(source, "/")
		out[id] = strings.ToLower("xpkg.crossplane.io/" + owner + "/" + name)
		if used[out[id]] {
			out[id] = strings.ToLower("xpkg.crossplane.io/" + owner + "/" + project + "/" + name)
		}
		used[out[id]] = true
	}
	return out
}

// content is the content of one version.
type content struct {
	tag   string
	facts catalog.Facts
}

// contentOf returns the content for a tag.
func contentOf(all []content, tag string) catalog.Facts {
	var f catalog.Facts
	for i, c := range all {
		x, y := version.Parse(c.tag), version.Parse(tag)
		if i == 0 || x.Compare(&y) <= 0 {
			f = c.facts
		}
	}
	head := catalog.Head{}
	if f.Head != nil {
		head = *f.Head
		head.Kinds = slices.Clone(head.Kinds)
	}
	f.Head = &head
	return f
}

// read returns the contents of the corpus by source and name, lowest version first.
func read(t testing.TB, dir string, texts bool) map[string][]content {
	t.Helper()
	items, err := packages(dir)
	if err != nil {
		t.Fatal(err)
	}
	results := make([]map[string]content, len(items))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, item := range items {
		g.Go(func() error {
			results[i] = readItem(item, texts)
			return nil
		})
	}
	_ = g.Wait() // No item returns an error.
	out := map[string][]content{}
	for _, all := range results {
		for key, c := range all {
			out[key] = append(out[key], c)
		}
	}
	for _, all := range out {
		slices.SortFunc(all, func(a, b content) int {
			x, y := version.Parse(a.tag), version.Parse(b.tag)
			return x.Compare(&y)
		})
		for i := range all[:len(all)-1] {
			all[i].facts.Head.Text = nil
		}
	}
	return out
}

// readItem returns the contents of one folder. Items that are no packages, such as malformed ones, have none.
func readItem(item string, texts bool) map[string]content {
	source, tag, _ := strings.Cut(filepath.Base(item), "@")
	source = strings.ToLower(strings.Replace(source, "__", "/", 1))
	out := map[string]content{}
	add := func(pkg *xpkg.Package) {
		f, err := catalog.FactsOf("registry.example.org/x", tag, oci.Digest{}, time.Time{}, pkg)
		if err != nil {
			return
		}
		if texts {
			f.Head.Text, _ = catalog.TextOf("registry.example.org/x", pkg)
		}
		out[source+"#"+strings.ToLower(pkg.Meta.Name)] = content{tag, f}
	}
	if families(item, add) {
		return out
	}
	_ = filepath.WalkDir(item, func(path string, d os.DirEntry, err error) error {
		if err == nil && (d.Name() == "crossplane.yaml" || d.Name() == "upbound.yaml") {
			if pkg := readFolder(filepath.Dir(path)); pkg != nil {
				add(pkg)
			}
		}
		return nil
	})
	return out
}

func readFolder(dir string) *xpkg.Package {
	folder, err := xpkg.ReadFolder(os.DirFS(dir), xpkg.FolderOptions{ExamplesRoot: "examples"})
	if err != nil {
		return nil
	}
	pkg, err := folder.Package(xpkg.ReadOptions{})
	if err != nil {
		return nil
	}
	return pkg
}

// families calls add for the packages of a provider that is published as one package for each service. It returns false
// for other items.
func families(item string, add func(*xpkg.Package)) bool {
	raw, err := os.ReadFile(filepath.Join(item, "FAMILIES.json"))
	if err != nil {
		return false
	}
	var list struct {
		Families []struct {
			Package string
			// Files is a list, apart from the package without services.
			Files any
		} `json:"families"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return false
	}
	crds := filepath.Join(filepath.Dir(filepath.Dir(item)), "providers", filepath.Base(item), "package", "crds")
	for _, f := range list.Families {
		stream, err := os.ReadFile(filepath.Join(item, f.Package, "crossplane.yaml"))
		if err != nil {
			continue
		}
		files, _ := f.Files.([]any)
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(crds, fmt.Sprint(file)))
			if err == nil {
				stream = slices.Concat(stream, []byte("\n---\n"), text)
			}
		}
		if pkg, err := xpkg.Read(stream, xpkg.ReadOptions{}); err == nil {
			add(pkg)
		}
	}
	return true
}

// packages returns the folders of the packages of today.
func packages(dir string) ([]string, error) {
	var out []string
	for _, kind := range []string{"providers", "families", "configurations", "functions"} {
		items, err := filepath.Glob(filepath.Join(dir, kind, "*@*"))
		if err != nil {
			return nil, err
		}
		out = append(out, items...)
	}
	return out, nil
}
