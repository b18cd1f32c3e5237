package controller

import (
	"cmp"
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller/lock"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/restmapper"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// maxClaimAttempts is the maximum number of attempts to write the claim while other clients change
// the Lock.
const maxClaimAttempts = 10

// claim is the claim of a manager to the packages of its cluster.
type claim struct {
	client    client.Client
	namespace string
	// lease is the name of the Lease with which managers elect a leader in each namespace.
	lease string
	now   func() time.Time
}

// claimPackages claims the packages of a cluster for a manager that takes part in leader election. It fails with
// AnotherManager while a manager in another namespace is active. The package API must be installed.
func claimPackages(ctx context.Context, o Options) error {
	if o.LeaderElection == nil {
		return nil
	}
	c, err := newClaim(o)
	if err != nil {
		return err
	}
	return c.write(ctx)
}

func newClaim(o Options) (*claim, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.New(o.Config, client.Options{Scheme: scheme, Mapper: restmapper.New(scheme)})
	if err != nil {
		return nil, fmt.Errorf("claim of the manager: %w", err)
	}
	return &claim{
		client: c, namespace: o.namespace(), lease: cmp.Or(o.LeaderElection.Name, leader.DefaultLease), now: time.Now,
	}, nil
}

// write writes the claim into the Lock. It fails with AnotherManager while a manager in another namespace is active.
func (c *claim) write(ctx context.Context) error {
	for try := 1; ; try++ {
		err := c.tryWrite(ctx)
		if !apierrors.IsConflict(err) || try == maxClaimAttempts {
			return err
		}
	}
}

// tryWrite makes one attempt to write the claim. It fails with a conflict if another client has changed the Lock
// meanwhile.
func (c *claim) tryWrite(ctx context.Context) error {
	current := &v1beta1.Lock{}
	err := c.client.Get(ctx, client.ObjectKey{Name: v1beta1.LockName}, current)
	if apierrors.IsNotFound(err) {
		return c.create(ctx)
	}
	if err != nil {
		return fmt.Errorf("read the Lock: %w", err)
	}
	holder := current.Annotations[leader.AnnotationNamespace]
	if holder == c.namespace {
		return nil
	}
	if err := c.checkHolder(ctx, holder); err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&current.ObjectMeta, leader.AnnotationNamespace, c.namespace)
	return c.client.Update(ctx, current, client.FieldOwner(plan.FieldManager))
}

// create creates the Lock with the claim. The field manager contains the namespace, so that the claims of two managers
// conflict.
func (c *claim) create(ctx context.Context) error {
	claimed := &v1beta1.Lock{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		leader.AnnotationNamespace: c.namespace,
	}}}
	return lock.Create(ctx, c.client, claimed, plan.FieldManager+"/"+c.namespace)
}

// checkHolder fails with AnotherManager if the manager in a namespace renews its Lease, or if this
// manager may not read that Lease.
func (c *claim) checkHolder(ctx context.Context, namespace string) error {
	if namespace == "" {
		return nil
	}
	var lease coordinationv1.Lease
	err := c.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: c.lease}, &lease)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil && !apierrors.IsForbidden(err):
		return fmt.Errorf("read the Lease %s/%s of another manager: %w", namespace, c.lease, err)
	case err == nil && !leader.IsRenewed(lease, c.now()):
		return nil
	}
	return leader.ErrAnotherManager.New(
		err, "a manager in the namespace %s manages the packages of this cluster", namespace,
	).
		WithDo(
			"Stop that manager, or uninstall this one. If none runs in the namespace %s, run `kubectl annotate locks.pkg.crossplane.io %s %s-`.",
			namespace, v1beta1.LockName, leader.AnnotationNamespace,
		)
}
