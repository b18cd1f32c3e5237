package runtime

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// ExternalRuntime leaves programs to somebody else, who reports how they do with the
// condition RuntimeHealthy of their revision, with the generation of the revision as
// its observedGeneration. A report about an older generation does not count: the
// program of a revision that was inactive meanwhile was stopped.
type ExternalRuntime struct {
	// Reader reads revisions; one that answers from a cache is best.
	Reader client.Reader
}

var _ Runtime = ExternalRuntime{}

// Obtain does nothing: whoever runs the program gets its image.
func (ExternalRuntime) Obtain(context.Context, Program) error { return nil }

// ServiceAccount is the one that the program would run as in a Deployment.
func (ExternalRuntime) ServiceAccount(p Program) (string, error) { return AccountName(p) }

// Run reads what is reported.
func (r ExternalRuntime) Run(ctx context.Context, p Program) (State, error) {
	rev := v1.NewPackage(p.Owner.Package.Kind).NewRevision()
	if err := r.Reader.Get(ctx, client.ObjectKey{Name: p.Owner.Revision.Name}, rev); err != nil {
		return State{}, fmt.Errorf("read what is reported of %s: %w", p.Owner.Revision.Name, err)
	}
	c := rev.GetCondition(v1.TypeRuntimeHealthy)
	state := State{Reported: true, Reason: ReasonNotReported}
	switch {
	case p.AwaitingActivation:
		state.Available = true
	case c.Status == corev1.ConditionUnknown || c.ObservedGeneration != 0 && c.ObservedGeneration != rev.GetGeneration():
		state.Message = "somebody else runs the program, and has not reported the condition RuntimeHealthy of this revision yet"
	case c.Status == corev1.ConditionTrue:
		state.Available = true
	default:
		state.Reason, state.Message = string(c.Reason), c.Message
	}
	if fn, ok := rev.(*v1.FunctionRevision); ok {
		state.Endpoint = fn.Status.Endpoint
	}
	return state, nil
}

// Others are none that anybody here could stop.
func (ExternalRuntime) Others(context.Context, plan.Requester) ([]plan.Owner, error) { return nil, nil }

// Stop has nothing to stop: whoever runs a program follows spec.desiredState.
func (ExternalRuntime) Stop(context.Context, plan.Owner) (bool, error) { return true, nil }
