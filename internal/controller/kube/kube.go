// Package kube provides the controllers with access to the API server.
package kube

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// API reads from and writes to the API server.
type API struct {
	// Client reads from the cache, and writes.
	Client client.Client
	// Live reads from the API server.
	Live    client.Reader
	Cluster *apply.Cluster
	// Revisions lists the revisions of packages from the API server.
	Revisions *state.LiveRevisions
	Status    *status.Reporter
}

// Now returns the current time.
func (a API) Now() time.Time { return a.Status.Now() }

// Time returns the current time for a condition.
func (a API) Time() metav1.Time { return metav1.NewTime(a.Now()) }

// OwnerOf returns the package of a revision from the cache, or nil if the package does not exist.
func (a API) OwnerOf(ctx context.Context, rev v1.PackageRevision) (v1.Package, error) {
	p := v1.NewPackage(rev.PackageKind())
	err := a.Client.Get(ctx, types.NamespacedName{Name: rev.GetLabels()[v1.LabelPackage]}, p)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return p, err
}

// RepositoryOf returns the repository of a package in the cache, or "" if there is none.
func (a API) RepositoryOf(ctx context.Context, kind, name string) string {
	if name == "" {
		return ""
	}
	p := v1.NewPackage(kind)
	if a.Client.Get(ctx, types.NamespacedName{Name: name}, p) != nil {
		return ""
	}
	return oci.RepositoryName(p.PackageSpec().Package)
}

// Reread reads an object from the API server into live. It fails with requeue.ErrStale if the object
// does not exist any more, or is a new object with the same name.
func (a API) Reread(ctx context.Context, seen, live client.Object) error {
	err := a.Live.Get(ctx, client.ObjectKeyFromObject(seen), live)
	switch {
	case apierrors.IsNotFound(err):
		return requeue.ErrStale
	case err != nil:
		return fmt.Errorf("read %s again: %w", seen.GetName(), err)
	case live.GetUID() != seen.GetUID():
		return requeue.ErrStale
	}
	return nil
}

// RereadExisting is like Reread, and also fails with requeue.ErrStale if the object is being
// deleted.
func (a API) RereadExisting(ctx context.Context, seen, live client.Object) error {
	if err := a.Reread(ctx, seen, live); err != nil {
		return err
	}
	if live.GetDeletionTimestamp() != nil {
		return requeue.ErrStale
	}
	return nil
}

// Delete deletes an object. It fails with a conflict if the object has changed since it was read,
// and succeeds if the object does not exist.
func (a API) Delete(ctx context.Context, o client.Object) error {
	precondition := client.Preconditions{UID: new(o.GetUID()), ResourceVersion: new(o.GetResourceVersion())}
	return client.IgnoreNotFound(a.Client.Delete(ctx, o, precondition))
}
