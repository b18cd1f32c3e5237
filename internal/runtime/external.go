package runtime

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// ExternalRuntime leaves runtimes to another system, which reports their health in the condition
// RuntimeHealthy of their revision, or of their owner with a namespace, with its generation as the observedGeneration.
// A report for an older generation is ignored, because the revision may have been inactive, and its
// runtime stopped, since then.
type ExternalRuntime struct {
	// Client reads revisions, preferably from a cache.
	Client client.Client
}

var _ Runtime = ExternalRuntime{}

// Obtain does nothing: the other system fetches the image.
func (ExternalRuntime) Obtain(context.Context, Workload) error { return nil }

// ServiceAccount returns the name of the ServiceAccount that the runtime would use in a Deployment.
func (ExternalRuntime) ServiceAccount(p Workload) (string, error) { return AccountName(p) }

// IsUnreadable reports whether an error means that an image does not exist for the credentials of the manager. Another
// system may have its own, or run an image of its machine.
func IsUnreadable(err error) bool {
	if err == nil {
		return false
	}
	class := errcode.From(err).Code.Class.Name
	return class == errcode.NotFound.Name || class == errcode.Unauthorized.Name
}

// reported is an object in whose status another system reports the health of a runtime.
type reported interface {
	client.Object
	v1.Conditioned
}

// Run returns the reported state.
func (r ExternalRuntime) Run(ctx context.Context, p Workload) (State, error) {
	owner := p.Owner.Revision
	known, err := r.Client.Scheme().New(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	if err != nil {
		return State{}, err
	}
	o := known.(reported)
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}, o); err != nil {
		return State{}, fmt.Errorf("read the reported state of %s: %w", owner.Name, err)
	}
	endpoint := ""
	if fn, ok := o.(*v1.FunctionRevision); ok {
		endpoint = fn.Status.Endpoint
	}
	state, c := Unreported(p, endpoint), o.GetCondition(v1.TypeRuntimeHealthy)
	switch {
	case p.AwaitingActivation:
	case c.Status == corev1.ConditionUnknown || c.ObservedGeneration != 0 && c.ObservedGeneration != o.GetGeneration():
	case c.Status == corev1.ConditionTrue:
		state.Available, state.Message = true, ""
	default:
		state.Reason, state.Message = string(c.Reason), c.Message
	}
	return state, nil
}

// Unreported returns the state of an external runtime whose health was not reported. One that awaits activation needs
// no report.
func Unreported(p Workload, endpoint string) State {
	state := State{Reported: true, Available: p.AwaitingActivation, Reason: ReasonNotReported, Endpoint: endpoint}
	if !state.Available {
		state.Message = "another system runs the runtime, and has not reported the condition RuntimeHealthy of this object yet"
	}
	return state
}

// Others returns no revisions: the manager runs none of the runtimes.
func (ExternalRuntime) Others(context.Context, plan.Requester) ([]plan.Owner, error) { return nil, nil }

// Stop does nothing: the other system follows spec.desiredState.
func (ExternalRuntime) Stop(context.Context, plan.Owner) (bool, error) { return true, nil }
