package deployment

import (
	"context"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/plan"
	"github.com/xpkg-dev/xpkg/internal/runtime/shape"
)

// Runtime runs programs in one namespace. It may be used by any number of
// goroutines, for a revision by one at a time. The zero value with its exported
// fields set is ready.
type Runtime struct {
	// Client reads and writes ServiceAccounts, Deployments and Services. It may read
	// from a cache: a write on stale information fails with a failure of the class
	// Conflict, to be tried again.
	Client client.Client
	// Pods reads pods, and is to read them from the API server itself: they are
	// looked at when a program does not run, and to know that one has stopped.
	Pods client.Reader
	// Namespace is where the programs run.
	Namespace string

	mu sync.Mutex
	// generations are those that were written last.
	generations map[types.UID]int64
}

// Ensure brings the program of a revision into the cluster as the objects say, and
// tells how it does.
//
// The Service that revisions share moves to the revision when its program is
// available, or when the one that has the Service does not run. A ServiceAccount
// that is somebody else's is used and left alone. A Deployment of another revision is
// never touched: where it has the name that this one wants, State.HeldBy names that
// revision, and nothing is written. One of this revision under a name that it had
// before makes place for the one that is wanted. The failure NameConflict says that the Deployment
// or the Service belongs to somebody else; then nothing is written either.
func (r *Runtime) Ensure(ctx context.Context, o shape.Objects) (State, error) {
	service, err := r.readService(ctx, o)
	if err != nil {
		return State{}, err
	}
	live, state, err := r.readDeployment(ctx, o)
	if err != nil || state.Reason != "" {
		return state, err
	}
	former, err := r.former(ctx, o)
	if err != nil {
		return State{}, err
	}
	if len(former) > 0 && o.Owner.Package.Kind != v1.FunctionKind {
		return r.makeWay(ctx, o, live, former)
	}
	if o.ServiceAccount != nil {
		if err := r.ensureAccount(ctx, o); err != nil {
			return State{}, err
		}
	}
	if live, err = r.ensureDeployment(ctx, o, live); err != nil {
		return State{}, err
	}
	state = stateOf(live)
	if err := r.ensureService(ctx, o, service, state.Available); err != nil {
		return State{}, err
	}
	if state.Available {
		return state, r.end(ctx, former)
	}
	return r.explain(ctx, o.Owner.Revision.Name, state)
}

// EnsureAccount makes the ServiceAccount of a program that does not run as a
// Deployment. One that is somebody else's is used and left alone.
func (r *Runtime) EnsureAccount(ctx context.Context, o shape.Objects) error {
	if o.ServiceAccount == nil {
		return nil
	}
	return r.ensureAccount(ctx, o)
}

// EnsureService makes the Service of such a program, and gives it to the revision.
func (r *Runtime) EnsureService(ctx context.Context, o shape.Objects) error {
	live, err := r.readService(ctx, o)
	if err != nil {
		return err
	}
	return r.ensureService(ctx, o, live, true)
}

// readService reads the Service of the package, and fails when it is somebody
// else's.
func (r *Runtime) readService(ctx context.Context, o shape.Objects) (*corev1.Service, error) {
	live := &corev1.Service{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(o.Service), live)
	if apierrors.IsNotFound(err) {
		return &corev1.Service{}, nil
	}
	if err != nil {
		return nil, classify(err, "read", o.Service)
	}
	if _, holder := shape.Hold(live.OwnerReferences, o.Owner, nil); holder != "" {
		return nil, belongs(o.Service, holder)
	}
	if !ours(live, o.Owner) {
		return nil, belongs(o.Service, "")
	}
	return live, nil
}

// readDeployment reads the Deployment of the revision. A state with a reason says
// that it cannot be written now.
func (r *Runtime) readDeployment(ctx context.Context, o shape.Objects) (*appsv1.Deployment, State, error) {
	live := &appsv1.Deployment{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(o.Deployment), live)
	if apierrors.IsNotFound(err) {
		return &appsv1.Deployment{}, State{}, nil
	}
	if err != nil {
		return nil, State{}, classify(err, "read", o.Deployment)
	}
	switch c := holderOf(live); {
	case c != nil && !o.Owner.Revision.Is(*c) && o.Owner.IsSibling(*c):
		return nil, heldBy(live, c.Name), nil
	case c != nil && !o.Owner.Revision.Is(*c):
		return nil, State{}, belongs(o.Deployment, c.Kind+"/"+c.Name)
	case c == nil && !ours(live, o.Owner):
		return nil, State{}, belongs(o.Deployment, "")
	case live.DeletionTimestamp != nil:
		return nil, terminating(live), nil
	case !sameSelector(live, o.Deployment):
		// It cannot be changed, so that the Deployment is made anew.
		return nil, replacing(live), classify(r.delete(ctx, live), "delete", live)
	}
	return live, State{}, nil
}

// ours reports whether an object without a controller is one that we may take: it
// carries what we write on every object, or it is owned by the package.
func ours(o client.Object, who plan.Requester) bool {
	if o.GetAnnotations()[plan.ContentAnnotation] != "" {
		return true
	}
	for _, ref := range o.GetOwnerReferences() {
		if who.IsFamily(ref) {
			return true
		}
	}
	return false
}

func belongs(o client.Object, holder string) error {
	if holder == "" {
		return ErrNameConflict.New(nil, "%s exists and was not made by xpkg", nameOf(o))
	}
	return ErrNameConflict.New(nil, "%s belongs to %s", nameOf(o), holder)
}

func (r *Runtime) ensureDeployment(ctx context.Context, o shape.Objects, live *appsv1.Deployment) (*appsv1.Deployment, error) {
	next, err := nextDeployment(live, o.Deployment, r.generation(live))
	if err != nil || next == nil {
		r.remember(live)
		return live, err
	}
	if err := r.write(ctx, next); err != nil {
		return nil, err
	}
	return next, nil
}

// ensureService gives the Service to the revision, unless another one of the package
// still answers behind it.
func (r *Runtime) ensureService(ctx context.Context, o shape.Objects, live *corev1.Service, available bool) error {
	if !available {
		busy, err := r.answers(ctx, live, o.Owner)
		if err != nil || busy {
			return err
		}
	}
	owners, _ := shape.Hold(live.OwnerReferences, o.Owner, o.Service.OwnerReferences)
	next, err := nextService(live, o.Service, owners, r.generation(live))
	if err != nil || next == nil {
		r.remember(live)
		return err
	}
	return r.write(ctx, next)
}

// ensureAccount makes the ServiceAccount that the program runs as. One that belongs
// to another package is shared with it, and one that is nobody's of ours is left
// alone.
func (r *Runtime) ensureAccount(ctx context.Context, o shape.Objects) error {
	live := &corev1.ServiceAccount{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(o.ServiceAccount), live)
	if client.IgnoreNotFound(err) != nil {
		return classify(err, "read", o.ServiceAccount)
	}
	owners, holder := shape.Hold(live.OwnerReferences, o.Owner, o.ServiceAccount.OwnerReferences)
	switch {
	case holder != "":
		return r.join(ctx, o, live)
	case live.UID != "" && !ours(live, o.Owner):
		return nil
	}
	next, err := nextAccount(live, o.ServiceAccount, owners)
	if err != nil || next == nil {
		return err
	}
	return r.write(ctx, next)
}

// join makes a ServiceAccount of another package outlive that package, for as long
// as this one uses it. One that something else controls is left alone.
func (r *Runtime) join(ctx context.Context, o shape.Objects, live *corev1.ServiceAccount) error {
	if live.Annotations[plan.ContentAnnotation] == "" {
		return nil
	}
	owners := shape.Join(live.OwnerReferences, o.Owner)
	if shape.EqualOwners(owners, live.OwnerReferences) {
		return nil
	}
	next := live.DeepCopy()
	next.TypeMeta, next.OwnerReferences, next.ManagedFields = o.ServiceAccount.TypeMeta, owners, nil
	return r.write(ctx, next)
}
