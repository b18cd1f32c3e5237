package preview_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/preview"
	"github.com/xpkg-dev/xpkg/internal/solve"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/plane"
)

// A plan tells what is off, and knows with what installed packages work, by the Lock.
func TestPlansWithOptionalDependencies(t *testing.T) {
	cfg := cluster.Start(t)
	s := newShelf()
	const at = "registry.example.com/optional/"
	works := "  annotations:\n    " + format.AnnotationOptional + ": '[{\"provider\": \"" + at + "mail\", \"version\": \"<v2\"}]'\n"
	shop := strings.Replace(provider("shop", ""), "  name: shop\n", "  name: shop\n"+works, 1)
	for ref, stream := range map[string]string{
		"shop:v1": shop, "mail:v1.0.0": provider("mail", ""), "mail:v2.0.0": provider("mail", ""),
		"any:v1": needing("any", at+"mail"), "new:v1": strings.Replace(needing("new", at+"mail"), "'>=v1'", "'>=v2'", 1),
	} {
		s.put(at+ref, stream)
	}
	stop := plane.Run(t, cfg, s)
	c, pl := plane.Client(t, cfg), newPlanner(t, cfg, s)
	pl.Registry = s
	installed := newProvider("optional-shop", at+"shop:v1")
	p := install(t, pl, installed)
	want := []preview.Dependency{{Package: at + "mail", Constraint: "<v2", State: closure.Off, Optional: true, Kind: format.Provider}}
	if !slices.Equal(p.Dependencies, want) || p.Waits() || len(p.Brings) != 0 {
		t.Errorf("planned with %+v, and brings %+v", p.Dependencies, p.Brings)
	}
	create(t, c, installed)
	settled(t, c, installed)
	untilLock(t, c, "says with what it works", installed, func(p v1beta1.LockPackage) bool { return len(p.OptionalDependencies) == 1 })
	stop()

	p = install(t, pl, newProvider("optional-any", at+"any:v1"))
	if len(p.Brings) != 1 || !strings.HasPrefix(p.Brings[0].Reference, at+"mail:v1.0.0") {
		t.Errorf("it brings %+v", p.Brings)
	}
	_, err := pl.Install(t.Context(), newProvider("optional-new", at+"new:v1"))
	if !solve.ErrUnsolvable.Is(err) || !strings.Contains(err.Error(), "provider/optional-shop works only with "+at+"mail <v2") {
		t.Errorf("got %v", err)
	}
}
