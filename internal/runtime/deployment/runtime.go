package deployment

import (
	"context"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Runtime runs package runtimes in one namespace. It is safe for concurrent use, except
// that each revision may be used by one goroutine at a time. The zero value with its
// exported fields set is ready to use.
type Runtime struct {
	// Client reads and writes ServiceAccounts, Deployments and Services. It may read from a cache:
	// a write that is based on a stale read fails with an error of the class Conflict, and is
	// retried.
	Client client.Client
	// Pods reads pods from the API server, not from a cache, to determine why a runtime is not
	// available and whether it has stopped.
	Pods client.Reader
	// Namespace is the namespace of the runtimes.
	Namespace string
	// Privileges are the privileges that runtime configurations may use.
	Privileges []manifests.Privilege
	// Now returns the current time; nil means time.Now.
	Now func() time.Time

	mu sync.Mutex
	// generations are the generations of the objects when they last matched their desired state.
	generations map[types.UID]int64
	// accepted are the digests of the Deployments that the API server accepts and that are not written yet.
	accepted map[types.NamespacedName]string
}

// Ensure creates or updates the objects of a runtime and returns its state.
//
// The shared Service moves to the revision when its runtime is available, or when the
// runtime of the revision that holds the Service is not. A Deployment of another revision
// is never changed: if it has the name that this revision needs, State.HeldBy is that
// revision, and nothing is written. A Deployment of this revision under an earlier name is
// replaced. Ensure fails with NameConflict if the Deployment or the Service belongs to
// another owner, and as [Runtime.CheckServiceAccount] does, and then writes nothing.
//
// If the ServiceAccount was created again, the pods are replaced, because their tokens are
// not valid any more, and the runtime is not available until then.
func (r *Runtime) Ensure(ctx context.Context, o manifests.Objects) (runtime.State, error) {
	service, err := readService(ctx, r.Client, o)
	if err != nil {
		return runtime.State{}, err
	}
	sa, err := readAccount(ctx, r.Client, r.Namespace, o, r.Privileges)
	if err != nil {
		return runtime.State{}, err
	}
	live, state, err := r.prepareDeployment(ctx, o)
	if err != nil || state.Reason != "" {
		return state, err
	}
	former, err := r.former(ctx, o)
	if err != nil {
		return runtime.State{}, err
	}
	if len(former) > 0 && o.Owner.Package.Kind != v1.FunctionKind {
		return r.deleteRenamed(ctx, o, live, former)
	}
	if err := r.ensureAccount(ctx, o, &sa); err != nil {
		return runtime.State{}, err
	}
	if live, err = r.ensureDeployment(ctx, o, live, sa); err != nil {
		return runtime.State{}, err
	}
	state = withAccount(stateOf(live), live, sa)
	if err := r.ensureService(ctx, o, service, state.Available); err != nil {
		return runtime.State{}, err
	}
	if state.Available && !state.RollingOut {
		return state, r.end(ctx, former)
	}
	return r.explain(ctx, o, state)
}

// EnsureService creates or updates the Service of a runtime that does not run as a Deployment, and
// makes the revision the controller of the Service. It fails with NameConflict if the Service
// belongs to another owner.
func (r *Runtime) EnsureService(ctx context.Context, o manifests.Objects) error {
	live, err := readService(ctx, r.Client, o)
	if err != nil {
		return err
	}
	return r.ensureService(ctx, o, live, true)
}

// readService reads the Service of the package. It fails with NameConflict if the Service belongs
// to another owner.
func readService(ctx context.Context, reader client.Reader, o manifests.Objects) (*corev1.Service, error) {
	live := &corev1.Service{}
	if o.Service == nil {
		return live, nil
	}
	err := reader.Get(ctx, client.ObjectKeyFromObject(o.Service), live)
	if apierrors.IsNotFound(err) {
		return &corev1.Service{}, nil
	}
	if err != nil {
		return nil, classify(err, "read", o.Service)
	}
	if ours, holder := manifests.Claim(live, o.Owner); !ours {
		return nil, belongs(o.Service, holder, o.Owner)
	}
	return live, nil
}

// prepareDeployment is like readDeployment, and deletes a Deployment with another selector than the
// desired one.
func (r *Runtime) prepareDeployment(
	ctx context.Context, o manifests.Objects,
) (*appsv1.Deployment, runtime.State, error) {
	live, state, err := r.readDeployment(ctx, o)
	if err == nil && state.Reason == ReasonReplacing {
		err = classify(r.delete(ctx, live), "delete", live)
	}
	return live, state, err
}

// readDeployment reads the Deployment of the revision. It returns a state with a reason if the
// Deployment cannot be written now: another revision holds it, it is being deleted, or its selector,
// which is immutable, differs from the desired one. It fails with NameConflict if the Deployment
// belongs to another owner.
func (r *Runtime) readDeployment(ctx context.Context, o manifests.Objects) (*appsv1.Deployment, runtime.State, error) {
	live := &appsv1.Deployment{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(o.Deployment), live)
	if apierrors.IsNotFound(err) {
		return &appsv1.Deployment{}, runtime.State{}, nil
	}
	if err != nil {
		return nil, runtime.State{}, classify(err, "read", o.Deployment)
	}
	ours, holder := manifests.Claim(live, o.Owner)
	switch c := holderOf(live); {
	case !ours:
		return nil, runtime.State{}, belongs(o.Deployment, holder, o.Owner)
	case c != nil && !o.Owner.Revision.Is(*c):
		return live, heldBy(live, c.Name), nil
	case live.DeletionTimestamp != nil:
		return live, terminating(live), nil
	case !sameSelector(live, o.Deployment):
		return live, replacing(live), nil
	}
	return live, runtime.State{}, nil
}

// belongs returns the error for an object of a runtime whose name another object has. Holder is the owner of that
// object, or nil for one that xpkg did not create.
func belongs(o client.Object, holder *metav1.OwnerReference, who plan.Requester) error {
	err := ErrNameConflict.New(nil, "%s exists and was not made by xpkg", nameOf(o))
	if holder != nil {
		err = ErrNameConflict.New(nil, "%s belongs to %s/%s", nameOf(o), holder.Kind, holder.Name)
	}
	if who.Package.Namespace != "" {
		return err.WithDo(
			"Run `kubectl delete --namespace %s %s %s`, or give the Package another name.", o.GetNamespace(),
			strings.ToLower(kindOf(o)), o.GetName(),
		)
	}
	return err
}

func (r *Runtime) ensureDeployment(
	ctx context.Context, o manifests.Objects, live *appsv1.Deployment, a account,
) (*appsv1.Deployment, error) {
	next, err := nextDeployment(live, o.Deployment, a, r.generation(live))
	if err != nil || next == nil {
		r.remember(live)
		return live, err
	}
	if err := r.write(ctx, next); err != nil {
		return nil, err
	}
	r.mu.Lock()
	delete(r.accepted, client.ObjectKeyFromObject(next))
	r.mu.Unlock()
	return next, nil
}

// ensureService creates or updates the Service, and makes the revision its controller. If the
// runtime of the revision is not available and the Service selects a ready runtime of another
// revision, the Service stays as it is.
func (r *Runtime) ensureService(ctx context.Context, o manifests.Objects, live *corev1.Service, available bool) error {
	if o.Service == nil {
		return nil
	}
	if !available {
		busy, err := r.servesOther(ctx, live, o.Owner)
		if err != nil || busy {
			return err
		}
	}
	owners := manifests.Hold(live.OwnerReferences, o.Owner, o.Service.OwnerReferences)
	next, err := nextService(live, o.Service, owners, r.generation(live))
	if err != nil || next == nil {
		r.remember(live)
		return err
	}
	return r.write(ctx, next)
}
