package permission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// AnnotationScope on the Lock has the value ScopeNamespaced if the manager confines the runtimes of
// packages to its namespace. Plans read it.
const (
	AnnotationScope = "xpkg.dev/permission-scope"
	ScopeNamespaced = "Namespaced"
)

// Loader reads the input for the permissions of revisions from a cluster.
type Loader struct {
	// Reader lists the revisions of provider families.
	Reader client.Reader
	// Namespace is the namespace of package runtimes.
	Namespace string
	// Namespaced confines them to it, for all namespaced resources.
	Namespaced bool
	// ClusterScoped returns the cluster-scoped resources that the API server serves.
	ClusterScoped func(context.Context) (map[schema.GroupResource]bool, error)
}

// Input returns the input for the permissions of a revision, except for the service accounts of its
// runtime. It fails with InvalidPermissions.
func (l Loader) Input(
	ctx context.Context, rev v1.PackageRevision, pkg *xpkg.Package, objects *desired.Objects,
) (rbac.Input, error) {
	mode := Mode{Namespace: l.Namespace, Namespaced: l.Namespaced}
	if mode.Namespaced {
		var err error
		if mode.ClusterScoped, err = l.ClusterScoped(ctx); err != nil {
			return rbac.Input{}, err
		}
	}
	list := v1.NewPackage(rev.PackageKind()).NewRevisionList()
	if family := pkg.Meta.Labels[v1.LabelProviderFamily]; family != "" {
		if err := l.Reader.List(ctx, list, client.MatchingLabels{v1.LabelProviderFamily: family}); err != nil {
			return rbac.Input{}, fmt.Errorf("list the provider family: %w", err)
		}
	}
	return Input(rev, pkg, objects, list.Revisions(), mode)
}
