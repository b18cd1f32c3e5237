package state

import (
	"cmp"
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// concurrentReads is the maximum number of packages that are read concurrently.
const concurrentReads = 8

// Addition is the content of a package that is installed or moved as a dependency.
type Addition struct {
	// Package is the new version of the package, or nil if it could not be read.
	Package *xpkg.Package
	// Objects are the objects of the new version, and Composed the CRDs that Crossplane creates
	// from them.
	Objects, Composed []plan.Ref
	// Signers have signed the new version, as the ImageConfigs require.
	Signers []signature.Verdict
	// Err is the reason why the objects are unknown, or why the version cannot be installed.
	Err error
}

// AdditionReader reads the packages that dependency resolution installs or moves.
type AdditionReader struct {
	Packages
	// Installed returns the installed package with a kind and a name. Its spec determines how the
	// new version is read.
	Installed func(ctx context.Context, kind, name string) (v1.Package, error)
	// CheckCrossplane fails for content that does not work with the cluster's version of
	// Crossplane.
	CheckCrossplane func(context.Context, xpkg.Meta) error
}

// ReadAll reads the packages that changes install or update on behalf of a dependent, in the order of
// the changes. Their contents were read by dependency resolution, so this is cheap.
func (r AdditionReader) ReadAll(ctx context.Context, parent v1.Package, changes []graph.Change) []Addition {
	out := make([]Addition, len(changes))
	var group errgroup.Group
	group.SetLimit(concurrentReads)
	for i, c := range changes {
		group.Go(func() error {
			p, pkg, signers, err := r.readChange(ctx, parent, c)
			out[i].Signers = signers
			var kinds *activation.Selection
			if err == nil {
				kinds, err = r.Kinds.Select(ctx, p, pkg, nil)
			}
			if err != nil {
				out[i].Err = fmt.Errorf("read %s, which %s needs: %w", c.To.Repository, parent.GetName(), err)
				return nil
			}
			objects, err := desired.Of(pkg, desired.Options{Package: c.Names()[0], Omit: kinds.Omits})
			if err != nil {
				out[i].Err = err
				return nil
			}
			out[i].Package, out[i].Objects = pkg, objects.Refs()
			if out[i].Composed, err = objects.ComposedCRDs(); err != nil {
				out[i].Err = err
				return nil
			}
			if err := rbac.CheckDefined(objects.Offered()); err != nil {
				out[i].Err = fmt.Errorf("%s, which %s needs: %w", c.To.Repository, parent.GetName(), err)
			}
			return nil
		})
	}
	_ = group.Wait() // Each addition has its own error.
	return out
}

// ReadChange reads the package that a change installs or moves on behalf of a dependent. With the error
// [xpkg.ErrIncompatible], it returns the package too.
func (r AdditionReader) ReadChange(ctx context.Context, parent v1.Package, c graph.Change) (*xpkg.Package, error) {
	_, pkg, _, err := r.readChange(ctx, parent, c)
	return pkg, err
}

// readChange is like ReadChange, and returns the package that is changed, and who has signed its content, too.
func (r AdditionReader) readChange(
	ctx context.Context, parent v1.Package, c graph.Change,
) (p v1.Package, content *xpkg.Package, signers []signature.Verdict, err error) {
	p = c.NewPackage(parent)
	if c.Existing != nil {
		if p, err = r.Installed(ctx, c.Existing.Kind, c.Existing.Name); err != nil {
			return nil, nil, nil, err
		}
	}
	spec, image := p.PackageSpec(), c.Reference()
	policy := cmp.Or(spec.PackagePullPolicy, corev1.PullIfNotPresent)
	origin, _, err := r.Origins.Locate(ctx, image, spec.PackagePullSecrets, policy)
	if err != nil {
		return p, nil, nil, err
	}
	if content, err = r.Read(ctx, origin, c.To.Digest, image, policy); err != nil {
		return p, nil, nil, err
	}
	if signers, err = r.Content.Verify(ctx, origin, c.To.Digest, revision.MayPull(policy)); err != nil {
		return p, nil, nil, err
	}
	if err := revision.Installable(p, content); err != nil || spec.IgnoreCrossplaneConstraints {
		return p, content, signers, err
	}
	return p, content, signers, r.CheckCrossplane(ctx, content.Meta)
}
