package cluster

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

const (
	// writeTime is the time for which a permit is valid.
	writeTime = 30 * time.Second
	// abandonedTime is the time without a change after which a claim has no valid permit.
	abandonedTime = 2 * writeTime
	// mostAttempts limits the attempts of a call. Each failure means that another server has got on.
	mostAttempts = 20
	// mostSeen limits the claims of other servers that are remembered.
	mostSeen = 1000
)

// Kind is the kind of what is claimed.
type Kind string

// The kinds of claims.
const (
	Version Kind = "version"
	Name    Kind = "name"
)

const (
	// LabelClaim on a Lease is the kind of the claim of a registry server: version or name.
	LabelClaim = "xpkg.dev/registry-claim"
	// AnnotationRepository on the Lease of a claim is the repository, without the host of the registry.
	AnnotationRepository = "xpkg.dev/registry-claim-repository"
	// AnnotationTag on the Lease of a claim is the tag that was pushed.
	AnnotationTag = "xpkg.dev/registry-claim-tag"
	// AnnotationDigest on the Lease of a claim is the digest of the content that was pushed.
	AnnotationDigest = "xpkg.dev/registry-claim-digest"
)

// Value is what a claim decides.
type Value struct {
	Repository, Tag string
	Digest          oci.Digest
}

// Claims are the claims of one server. They are safe for concurrent use.
type Claims struct {
	leases                       coordination.LeaseInterface
	namespace, backend, identity string
	now                          func() time.Time

	mu sync.Mutex
	// seen are claims that this server could not join, by name.
	seen map[string]sighting
}

// sighting is the state of a claim, and when this server saw it first.
type sighting struct {
	version string
	first   time.Time
}

// Claim is the state of a claim.
type Claim struct {
	Value
	// Permitted means that this server may write the value for the time that [Claims.Remaining] returns.
	Permitted bool
	// Fresh means that no other permit for the value was in use when this server got the one.
	Fresh bool

	lease   *coordinationv1.Lease
	granted time.Time
}

// Acquire claims a value for a key, or returns the value that another server has claimed. With that, the result is
// a permit if the function joins reports that this server may write it, too. A value without a permit, which no
// server can write any more, is replaced by the wanted one. The caller has to read afterwards whether a value is
// published.
func (c *Claims) Acquire(
	ctx context.Context, kind Kind, key string, wanted Value, joins func(context.Context, Value) (bool, error),
) (Claim, error) {
	name := nameOf(string(kind), c.backend, key)
	var err error
	for range mostAttempts {
		start := c.now()
		meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{LabelClaim: string(kind)}}
		lease := &coordinationv1.Lease{ObjectMeta: meta}
		c.set(lease, wanted)
		if lease, err = c.leases.Create(ctx, lease, metav1.CreateOptions{}); err == nil {
			return Claim{Value: wanted, Permitted: true, Fresh: true, lease: lease, granted: start}, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return Claim{}, err
		}
		var claim Claim
		claim, err = c.join(ctx, name, wanted, joins)
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return claim, err
		}
	}
	return Claim{}, err
}

// join returns the claim of another server, with a permit if there may be one. It fails with Conflict or NotFound
// if other servers have changed or deleted the claim meanwhile.
func (c *Claims) join(
	ctx context.Context, name string, wanted Value, joins func(context.Context, Value) (bool, error),
) (Claim, error) {
	lease, err := c.leases.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Claim{}, err
	}
	value := valueOf(lease)
	joined, err := joins(ctx, value)
	switch {
	case err != nil:
		return Claim{}, err
	case !joined && !c.isAbandoned(lease):
		return Claim{Value: value}, nil
	case !joined:
		value = wanted
	}
	start := c.now()
	c.set(lease, value)
	if lease, err = c.leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		return Claim{}, err
	}
	return Claim{Value: value, Permitted: true, Fresh: !joined, lease: lease, granted: start}, nil
}

// isAbandoned reports whether this server has seen a claim without a change for as long as a permit can be in use.
func (c *Claims) isAbandoned(lease *coordinationv1.Lease) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, s := c.now(), c.seen[lease.Name]
	if s.version == lease.ResourceVersion {
		return shorter(now, s.first) >= abandonedTime
	}
	if len(c.seen) >= mostSeen {
		clear(c.seen)
	}
	c.seen[lease.Name] = sighting{lease.ResourceVersion, now}
	return false
}

// Remaining returns the time for which a permit is valid.
func (c *Claims) Remaining(claim Claim) time.Duration {
	return writeTime - longer(c.now(), claim.granted)
}

// Release deletes a claim for which this server has a permit, unless another server has got one since: then it is
// for that one to delete it.
func (c *Claims) Release(ctx context.Context, claim Claim) error {
	if !claim.Permitted {
		return nil
	}
	err := c.leases.Delete(ctx, claim.lease.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &claim.lease.UID, ResourceVersion: &claim.lease.ResourceVersion},
	})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// set writes a value into a claim. Each call changes the object, so that each update gives it another resource
// version.
func (c *Claims) set(lease *coordinationv1.Lease, v Value) {
	transitions := int32(0)
	if n := lease.Spec.LeaseTransitions; n != nil {
		transitions = *n + 1
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseTransitions = &c.identity, &transitions
	lease.Annotations = map[string]string{
		AnnotationRepository: v.Repository, AnnotationTag: v.Tag, AnnotationDigest: v.Digest.String(),
	}
}

// valueOf returns the value of a claim; zero for a Lease that a server has not written.
func valueOf(lease *coordinationv1.Lease) Value {
	d, err := oci.ParseDigest(lease.Annotations[AnnotationDigest])
	if err != nil {
		return Value{}
	}
	return Value{lease.Annotations[AnnotationRepository], lease.Annotations[AnnotationTag], d}
}

// longer and shorter return the time between two times by the clock that ran more, or less: one of them stops while a
// machine sleeps, and the other one can be set.
func longer(now, then time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

func shorter(now, then time.Time) time.Duration {
	return min(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}
