package dependencies

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func TestLockNames(t *testing.T) {
	f := lockfile.File{Packages: []lockfile.Package{
		{Repository: "a.test/acme/base", Kind: xpkg.Provider},
		{Repository: "b.test/acme/base", Kind: xpkg.Provider},
		{Repository: "c.test/acme/base", Kind: xpkg.Function},
	}}
	want := map[string]string{
		"a.test/acme/base": "acme-base", "b.test/acme/base": "acme-base-1328e4d79c1c", "c.test/acme/base": "acme-base",
	}
	if diff := cmp.Diff(want, inventory.LockNames(f)); diff != "" {
		t.Error(diff)
	}
}
