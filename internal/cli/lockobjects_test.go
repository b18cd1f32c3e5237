package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
)

func TestLockNames(t *testing.T) {
	f := lockfile.File{Packages: []lockfile.Package{
		{Package: "a.test/acme/base", Kind: format.Provider},
		{Package: "b.test/acme/base", Kind: format.Provider},
		{Package: "c.test/acme/base", Kind: format.Function},
	}}
	want := map[string]string{
		"a.test/acme/base": "acme-base", "b.test/acme/base": "acme-base-1328e4d79c1c", "c.test/acme/base": "acme-base",
	}
	if diff := cmp.Diff(want, lockNames(f)); diff != "" {
		t.Error(diff)
	}
}
