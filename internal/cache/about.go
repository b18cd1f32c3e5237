package cache

import (
	"context"
	"encoding/json"

	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// about is what a list says of a package. It is kept beside the package, so that a
// list does not read every package each time.
type about struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

func aboutKey(root oci.Digest) oci.DerivedKey {
	return oci.DerivedKey{Digest: root, Name: "about", Version: 1}
}

// aboutRoom is more than what is written down of a package.
const aboutRoom = 4 << 10

// keepAbout writes down what a package is, if there is room for it. It is no use of
// the package, and not to write it costs time and nothing else.
func (c *Cache) keepAbout(ctx context.Context, root oci.Digest, a about) {
	if over, err := c.over(ctx, aboutRoom); c.limit > 0 && (err != nil || over > 0) {
		return
	}
	if raw, err := json.Marshal(a); err == nil {
		_ = c.store.Peek().PutDerived(ctx, aboutKey(root), raw)
	}
}

// keptAbout tells what was written down of a package.
func (c *Cache) keptAbout(ctx context.Context, root oci.Digest) (a about, ok bool) {
	raw, err := c.store.Peek().GetDerived(ctx, aboutKey(root))
	return a, err == nil && json.Unmarshal(raw, &a) == nil
}

// about tells what a package is: as it was written down, or else as the whole
// package says, which is written down then.
func (c *Cache) about(ctx context.Context, a oci.Artifact, file string) (about, error) {
	root := a.Root().Digest
	if kept, ok := c.keptAbout(ctx, root); ok {
		return kept, nil
	}
	what, err := readAbout(ctx, a, c.limits, file)
	if err == nil {
		c.keepAbout(ctx, root, what)
	}
	return what, err
}

// readAbout reads a whole package and tells what it is.
func readAbout(ctx context.Context, a oci.Artifact, limits oci.Limits, file string) (about, error) {
	m, err := oci.FindManifest(ctx, a, oci.Platform{}, limits)
	if err != nil {
		return about{}, err
	}
	stream, err := oci.ReadPackageYAML(ctx, a, m, limits)
	if err != nil {
		return about{}, err
	}
	pkg, err := format.Read(stream, format.ReadOptions{File: file, Policy: format.PolicyInstall()})
	if err != nil {
		return about{}, err
	}
	return about{Kind: string(pkg.Meta.Kind), Name: pkg.Meta.Name}, nil
}
