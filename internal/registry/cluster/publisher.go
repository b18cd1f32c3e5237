package cluster

import (
	"context"
	"crypto/rand"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Publisher returns the identity with which all servers of the namespace publish in the backend: the holder of a
// Lease that the first one creates and that none deletes.
func (c *Claims) Publisher(ctx context.Context) (string, error) {
	_, name := c.PublisherLease()
	lease, err := c.leases.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		lease, err = c.leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: new(rand.Text())},
		}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			lease, err = c.leases.Get(ctx, name, metav1.GetOptions{})
		}
	}
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}

// PublisherLease returns the namespace and the name of the Lease of [Claims.Publisher].
func (c *Claims) PublisherLease() (namespace, name string) {
	return c.namespace, nameOf("publisher", c.backend)
}
