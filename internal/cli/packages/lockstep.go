package packages

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// step is what becomes of one package of a lock file.
type step struct {
	locked lockfile.Package
	// live is what is installed of it, under whatever name, or nil; want is what is to
	// be installed.
	live, want v1.Package
	// plan is nil when nothing changes, and when none could be made.
	plan *planner.Plan
	// same says that the package is installed as it is locked.
	same bool
}

// steps compares the file with what is installed.
func (c *InstallCmd) steps(ctx context.Context, cluster client.Client, f lockfile.File) ([]*step, error) {
	all, err := inventory.LoadNamed(ctx, cluster)
	if err != nil {
		return nil, err
	}
	names := dependencies.LockNames(f)
	var out []*step
	for _, p := range f.InstallOrder() {
		s := &step{locked: p, live: all.Locked(p)}
		if s.live != nil {
			s.want = s.live.DeepCopyObject().(v1.Package)
			s.same = isLocked(s.live, p)
		} else {
			s.want = v1.NewPackage(string(p.Kind))
			s.want.SetName(names[p.Repository])
			c.configure(s.want)
			if other := all.Named(s.want); other != nil {
				return nil, installedOtherwise(other, p.Reference().String())
			}
		}
		if !s.same {
			s.want.PackageSpec().Package = p.Reference().String()
		}
		out = append(out, s)
	}
	return out, nil
}

// isLocked reports whether a package is installed with the content that is locked.
func isLocked(live v1.Package, p lockfile.Package) bool {
	spec, status := live.PackageSpec(), live.PackageStatus()
	if ref, err := oci.ParseReference(spec.Package, oci.ParseOptions{}); err == nil && !ref.Digest.IsZero() {
		return ref.Digest == p.Digest
	}
	return status.CurrentIdentifier == spec.Package && status.ResolvedDigest == p.Digest.String()
}

// carryOut makes the one write of a step.
func (s *step) carryOut(ctx context.Context, cluster client.Client) (v1.Package, string, error) {
	word := "created"
	if s.live != nil {
		word = "updated"
	}
	switch kind := s.want.GetObjectKind().GroupVersionKind(); {
	case s.same:
		return s.live, "unchanged", nil
	case s.plan != nil:
		done, err := carryOut(ctx, cluster, s.plan)
		return done, word, err
	case s.live != nil:
		err := cluster.Update(ctx, s.want, client.FieldOwner(plan.FieldManager))
		s.want.GetObjectKind().SetGroupVersionKind(kind)
		return s.want, word, connection.Classify(err, "update %s", inventory.ShortName(s.want))
	default:
		err := cluster.Create(ctx, s.want, client.FieldOwner(plan.FieldManager))
		s.want.GetObjectKind().SetGroupVersionKind(kind)
		return s.want, word, connection.Classify(err, "create %s", inventory.ShortName(s.want))
	}
}
