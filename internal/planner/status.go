package planner

import (
	"context"
	"fmt"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

// warnOfStatus adds a warning about a version that was yanked, retracted or deprecated. A status that cannot be read in time adds none.
func (pl *Planner) warnOfStatus(ctx context.Context, p v1.Package, res state.Resolution, out *Plan) {
	if pl.Registry == nil || res.LookupError != nil || !revision.MayPull(p.PackageSpec().PackagePullPolicy) {
		return
	}
	ref, err := oci.ParseReference(p.PackageSpec().Package, oci.ParseOptions{})
	if err != nil || ref.Tag == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tagTimeout)
	defer cancel()
	status, err := pl.statusOf(ctx, p, ref.WithDigest(res.Digest))
	if err == nil && status != nil {
		out.warn(fmt.Sprintf("%s %s is %s.", ref.Name(), ref.Tag, resolver.Describe(*status)))
	}
}

// statusOf returns the status of a version, and nil if it has none.
func (pl *Planner) statusOf(ctx context.Context, p v1.Package, of oci.Reference) (*catalog.Status, error) {
	registry := graph.New(nil, nil).Resolver(pl.Registry, pl.finder(), p).Registry
	repository := of
	repository.Tag, repository.Digest = "", oci.Digest{}
	list, err := registry.Versions(ctx, repository)
	if err != nil {
		return nil, err
	}
	return resolver.StatusOf(ctx, registry, of, list.Tags)
}
