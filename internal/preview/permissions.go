package preview

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/desired"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/rights"
)

// Permissions say how the rights of a package's program change.
type Permissions struct {
	// Added and Removed are compared by what they allow, however they are written.
	Added   []rbacv1.PolicyRule `json:"added,omitempty"`
	Removed []rbacv1.PolicyRule `json:"removed,omitempty"`
	// Denied says why the program may not have what it requests, if it may not. Then
	// no object is changed.
	Denied string `json:"denied,omitempty"`
}

// permissions compares the rights of the current revision's program with those of the
// one that runs, and what it requests with the ceiling.
func (pl *Planner) permissions(ctx context.Context, pkg *format.Package, n succession, out *Plan) error {
	after, err := pl.rightsOf(ctx, n.current, pkg)
	if err != nil {
		return err
	}
	if err := rights.CheckDefined(after.Defined); err != nil {
		return err
	}
	var p Permissions
	if len(after.Requests) > 0 {
		ceiling, err := pl.Ceiling.Read(ctx, pl.Reader, pl.Namespace)
		if err == nil {
			err = ceiling.Check(after.Requests)
		}
		switch {
		case rights.ErrPermissionDenied.Is(err):
			p.Denied = errors.Unwrap(err).Error()
		case err != nil:
			return err
		}
	}
	before, err := pl.rightsBefore(ctx, n)
	if err != nil {
		out.warn(fmt.Sprintf("What the program may do now is not known: %v.", err))
	}
	p.Added, p.Removed = rights.Changes(before, after)
	if len(p.Added)+len(p.Removed) > 0 || p.Denied != "" {
		out.Permissions = &p
	}
	return nil
}

// rightsBefore gives what the rights of the program that runs follow from; nothing
// where none runs.
func (pl *Planner) rightsBefore(ctx context.Context, n succession) (rights.Input, error) {
	if rev := given(n.before); rev != nil {
		pkg, err := pl.contentOf(ctx, rev)
		if err != nil {
			return rights.Input{}, err
		}
		return pl.rightsOf(ctx, rev, pkg)
	}
	return rights.Input{Kind: rights.Configuration}, nil
}

// given is the revision whose program has its rights: the one that was activated last,
// but for those that wait, or have waited in vain, until somebody approves them.
func given(revisions []v1.PackageRevision) v1.PackageRevision {
	var last v1.PackageRevision
	for _, rev := range revisions {
		spec := rev.RevisionSpec()
		if spec.Revision > 0 && len(rev.RevisionStatus().UnapprovedPermissions) == 0 && (last == nil || spec.Revision > last.RevisionSpec().Revision) {
			last = rev
		}
	}
	return last
}

// rightsOf gives what the rights of a revision follow from, with the same functions as
// the manager.
func (pl *Planner) rightsOf(ctx context.Context, rev v1.PackageRevision, pkg *format.Package) (rights.Input, error) {
	objects, err := desired.Of(pkg, revision.Additions(rev, pl.Namespace))
	if err != nil {
		return rights.Input{}, err
	}
	list := v1.NewPackage(rev.PackageKind()).NewRevisionList()
	if family := pkg.Meta.Labels[v1.LabelProviderFamily]; family != "" {
		if err := pl.Reader.List(ctx, list, client.MatchingLabels{v1.LabelProviderFamily: family}); err != nil {
			return rights.Input{}, fmt.Errorf("list the family: %w", err)
		}
	}
	return permission.Input(rev, pkg, objects, list.Revisions(), permission.Mode{Namespace: pl.Namespace})
}
