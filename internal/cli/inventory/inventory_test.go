package inventory

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
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
