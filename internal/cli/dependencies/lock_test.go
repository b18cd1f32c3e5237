package dependencies

import (
	"errors"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

func TestSuggestionsForADependencyTree(t *testing.T) {
	f := lockfile.File{Packages: []lockfile.Package{{Repository: "registry.example.com/acme/network"}, {Repository: "registry.example.com/acme/base"}}}
	_, err := findLocked(f, "netwrk")
	if do := errcode.From(err).Do; !errors.Is(err, ErrNotLocked) || do != "Did you mean registry.example.com/acme/network? "+ErrNotLocked.Fix {
		t.Errorf("%v, and what to do: %s", err, do)
	}
}
