package inventory

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// A package that was rolled back counts with the version that runs.
func TestClosureAfterARollback(t *testing.T) {
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats", Generation: 2}}
	p.Spec.Package = "registry.example.com/boats:v2"
	p.Status.CurrentRevision, p.Status.ResolvedDigest = "boats-2", "sha256:"+strings.Repeat("a", 64)
	lock := &v1beta1.Lock{Packages: []v1beta1.LockPackage{{
		Name: "boats-1", Source: "registry.example.com/boats", Version: "v1",
		Dependencies: []v1beta1.Dependency{{Package: "registry.example.com/rafts", Constraints: ">=v1"}},
	}}}
	for generation, want := range map[int64]string{2: "v1", 1: "v2"} {
		p.Status.Rollback = &v1.Rollback{From: "boats-2", To: "boats-1", Generation: generation}
		all := &Inventory{Packages: []v1.Package{p}, Lock: lock}
		got := all.Closure().Packages[0]
		if got.Version != want || got.Digest.IsZero() != (want == "v1") || len(got.Dependencies) > 0 != (want == "v1") {
			t.Errorf("after a rollback for generation %d: %+v", generation, got)
		}
	}
}

// A package whose requested version was not resolved, such as a paused one, counts with the version that runs.
func TestClosureOfAPausedPackage(t *testing.T) {
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats", Generation: 2, Annotations: map[string]string{
		v1.AnnotationPaused: "true",
	}}}
	p.Spec.Package = "registry.example.com/boats:v2"
	p.Status.CurrentIdentifier, p.Status.CurrentRevision, p.Status.ResolvedDigest = "registry.example.com/boats:v1",
		"boats-1", "sha256:"+strings.Repeat("a", 64)
	all := &Inventory{Packages: []v1.Package{p}, Lock: &v1beta1.Lock{Packages: []v1beta1.LockPackage{{
		Name: "boats-1", Source: "registry.example.com/boats", Version: "v1",
	}}}}
	closure := all.Closure()
	if got := closure.Packages[0]; got.Version != "v1" || !got.Digest.IsZero() || closure.Roots[0].Constraint != "v1" {
		t.Errorf("got %+v", closure)
	}
	if got := InstalledStatus(p); got != "Paused" {
		t.Errorf("the status is %s", got)
	}
}

// Packages are removed after those that require them, also when the Lock does not contain the requirements yet.
func TestRemovalGroups(t *testing.T) {
	source := func(name string) string { return "registry.example.com/" + name }
	for name, c := range map[string]struct {
		// locked are the packages in the Lock, each with what it requires.
		locked map[string][]string
		// automatic are the packages that were installed as dependencies.
		automatic, removed, want string
	}{
		"a chain": {map[string][]string{"a": {"b"}, "b": {"c"}, "c": nil}, "bc", "cab", "a b c"},
		"a diamond": {
			map[string][]string{"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": nil}, "", "abcd", "a bc d",
		},
		"through a package that stays":   {map[string][]string{"a": {"b"}, "b": {"c"}, "c": nil}, "", "ca", "a c"},
		"a cycle before its needs":       {map[string][]string{"a": {"b"}, "b": {"a", "c"}, "c": nil}, "", "cba", "ab c"},
		"unrelated":                      {map[string][]string{"a": nil, "b": nil}, "", "ba", "ab"},
		"a Lock that is behind":          {map[string][]string{"b": nil}, "b", "ba", "a b"},
		"a new package that is required": {map[string][]string{"b": {"a"}}, "b", "ab", "b a"},
		"a Lock without packages":        {nil, "bc", "cba", "a bc"},
	} {
		all := &Inventory{Lock: &v1beta1.Lock{}}
		for _, r := range "abcd" {
			p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(r)}}
			p.Spec.Package, p.Status.CurrentRevision = source(p.Name)+":v1", p.Name+"-1"
			if strings.ContainsRune(c.automatic, r) {
				p.Labels = map[string]string{graph.LabelAutoInstalled: "true"}
			}
			all.Packages = append(all.Packages, p)
		}
		for from, to := range c.locked {
			entry := v1beta1.LockPackage{Name: from + "-1", Source: source(from), Version: "v1"}
			for _, d := range to {
				entry.Dependencies = append(entry.Dependencies, v1beta1.Dependency{Package: source(d), Constraints: ">=v1"})
			}
			all.Lock.Packages = append(all.Lock.Packages, entry)
		}
		removed := slices.DeleteFunc(
			slices.Clone(all.Packages), func(p v1.Package) bool { return !strings.Contains(c.removed, p.GetName()) },
		)
		var groups []string
		for _, group := range all.RemovalGroups(removed) {
			var names []string
			for _, p := range group {
				names = append(names, p.GetName())
			}
			slices.Sort(names)
			groups = append(groups, strings.Join(names, ""))
		}
		if got := strings.Join(groups, " "); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// The error of a missing package suggests similar names: the name in a cluster can differ from
// the name of the repository.
func TestSuggestions(t *testing.T) {
	all := &Inventory{}
	for _, name := range []string{"acme-network", "acme-networks", "other"} {
		all.Packages = append(all.Packages, &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	all.Packages = append(all.Packages, &v1.Function{ObjectMeta: metav1.ObjectMeta{Name: "acme-greet"}})
	for name, want := range map[string]string{
		"network":              "Did you mean provider/acme-network or provider/acme-networks? ",
		"acme-netwrk":          "Did you mean provider/acme-network or provider/acme-networks? ",
		"function/othr":        "Did you mean provider/other? ",
		"provider/acme-greet":  "Did you mean function/acme-greet? ",
		"something-quite-else": "",
	} {
		_, err := all.Find(Name(name))
		if do := errcode.From(err).Do; !errors.Is(err, ErrPackageNotFound) || do != want+ErrPackageNotFound.Fix {
			t.Errorf("%s: %v, and what to do: %s", name, err, do)
		}
	}
}
