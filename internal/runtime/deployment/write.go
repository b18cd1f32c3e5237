package deployment

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// write creates an object without a UID, updates others, and records the new generation. It stores
// the response of the API server in the object.
func (r *Runtime) write(ctx context.Context, o client.Object) error {
	fresh := o.GetUID() == ""
	var err error
	if fresh {
		o.SetResourceVersion("")
		err = r.Client.Create(ctx, o, client.FieldOwner(plan.FieldManager))
	} else {
		err = r.Client.Update(ctx, o, client.FieldOwner(plan.FieldManager))
	}
	if err != nil {
		return classify(err, "write", o)
	}
	r.remember(o)
	return nil
}

// delete deletes an object with foreground propagation, after its dependents. It fails if the
// object has changed since it was read.
func (r *Runtime) delete(ctx context.Context, o client.Object) error {
	err := r.Client.Delete(ctx, o,
		client.Preconditions{UID: new(o.GetUID()), ResourceVersion: new(o.GetResourceVersion())},
		client.PropagationPolicy(metav1.DeletePropagationForeground))
	return client.IgnoreNotFound(err)
}

// remember records the generation of an object that matches its desired state.
func (r *Runtime) remember(o client.Object) {
	if o.GetUID() == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.generations == nil {
		r.generations = map[types.UID]int64{}
	}
	r.generations[o.GetUID()] = o.GetGeneration()
}

// generation returns the recorded generation of an object, or zero.
func (r *Runtime) generation(o client.Object) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.generations[o.GetUID()]
}

// forget removes the recorded generation of a deleted object.
func (r *Runtime) forget(o client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.generations, o.GetUID())
}
