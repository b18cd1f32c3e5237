package lockfile_test

import (
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

func ExampleParse() {
	written := lockfile.Encode(lockfile.File{
		Roots: []dependency.Root{{Package: "xpkg.example.org/acme/network", Constraint: ">=v1.0.0"}},
		Packages: []lockfile.Package{
			{Repository: "xpkg.example.org/acme/network", Version: "v1.2.0", Digest: oci.DigestOf(
				[]byte("content"),
			), Kind: "Provider"},
		},
	})
	f, err := lockfile.Parse(written)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range f.Packages {
		fmt.Println(p.Repository, p.ShortVersion(), p.Kind)
	}
	// Output: xpkg.example.org/acme/network v1.2.0 Provider
}
