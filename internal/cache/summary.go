package cache

import (
	"context"
	"encoding/json"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/packagestream"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// summary describes a package in a listing. It is stored beside the package, so that a
// listing does not read every package each time.
type summary struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

func aboutKey(root oci.Digest) store.DerivedKey {
	return store.DerivedKey{Digest: root, Name: "summary", Version: 1}
}

// maxSummary is an upper bound of the size of an encoded summary.
const maxSummary = 4 << 10

// storeSummary stores the summary of a package if there is room for it. It does not count
// as a use of the package. Without a stored summary, listing is only slower.
func (c *Cache) storeSummary(ctx context.Context, root oci.Digest, a summary) {
	if over, err := c.over(ctx, maxSummary); c.limit > 0 && (err != nil || over > 0) {
		return
	}
	if raw, err := json.Marshal(a); err == nil {
		_ = c.store.Peek().PutDerived(ctx, aboutKey(root), raw)
	}
}

// storedSummary returns the stored summary of a package.
func (c *Cache) storedSummary(ctx context.Context, root oci.Digest) (a summary, ok bool) {
	raw, err := c.store.Peek().GetDerived(ctx, aboutKey(root))
	return a, err == nil && json.Unmarshal(raw, &a) == nil
}

// summarize returns the stored summary of a package, or else reads the whole package and
// stores its summary.
func (c *Cache) summarize(ctx context.Context, a oci.Artifact, file string) (summary, error) {
	root := a.Root().Digest
	if kept, ok := c.storedSummary(ctx, root); ok {
		return kept, nil
	}
	what, err := readSummary(ctx, a, c.limits, file)
	if err == nil {
		c.storeSummary(ctx, root, what)
	}
	return what, err
}

// readSummary reads a whole package and returns its summary.
func readSummary(ctx context.Context, a oci.Artifact, limits oci.Limits, file string) (summary, error) {
	m, err := oci.FindManifest(ctx, a, oci.Platform{}, limits)
	if err != nil {
		return summary{}, err
	}
	text, err := packagestream.Read(ctx, a, m, packagestream.Options{Limits: limits})
	if err != nil {
		return summary{}, err
	}
	pkg, err := xpkg.Read(text, xpkg.ReadOptions{File: file, Policy: xpkg.PolicyInstall()})
	if err != nil {
		return summary{}, err
	}
	return summary{Kind: string(pkg.Meta.Kind), Name: pkg.Meta.Name}, nil
}
