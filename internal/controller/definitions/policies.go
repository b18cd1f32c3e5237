package definitions

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/apiextensions/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// Policies maintains the statuses of policies.
type Policies struct {
	// Cache reads policies and definitions, as [state.OnlyKinds] reduces them.
	Cache  client.Reader
	Client client.Client
	Events events.EventRecorder
	// Guard fails while Crossplane core would write the same objects.
	Guard func(context.Context) error
	Now   func() metav1.Time
}

// Reconcile writes the status of one policy.
func (r *Policies) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(state.PolicyGVK)
	if err := r.Cache.Get(ctx, req.NamespacedName, o); err != nil || o.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	maintains, err := isMaintained(ctx, r.Cache)
	if err != nil || !maintains || r.Guard(ctx) != nil || o.GetAnnotations()[v1.AnnotationPaused] == "true" {
		return ctrl.Result{}, err
	}
	all, err := state.List(ctx, r.Cache, state.DefinitionGVK)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := state.PolicyOf(o)
	activated, waits := matching(p, all)
	was, is := conditionsOf(o), conditionsOf(o)
	is.SetConditions(o.GetGeneration(), r.Now(), healthOf(p, all), establishedOf(activated, waits))
	before, _, _ := unstructured.NestedStringSlice(o.Object, "status", "activated")
	if sameConditions(was, is) && slices.Equal(before, activated) {
		return ctrl.Result{}, nil
	}
	// Both are written at once: a client that waits for the condition reads the list then.
	if err := writeStatus(ctx, r.Client, o, is, map[string]any{"activated": anyStrings(activated)}); err != nil {
		return stale(err)
	}
	for _, name := range activated {
		if !slices.Contains(before, name) {
			r.Events.Eventf(o, nil, corev1.EventTypeNormal, "ActivateManagedResourceDefinition", "Activate",
				"Activated ManagedResourceDefinition %s", name)
		}
	}
	return ctrl.Result{}, nil
}

// stale returns the result of a reconciliation: one that has failed because the cache is behind is repeated soon.
func stale(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return requeue.Soon(), nil
	}
	return ctrl.Result{}, err
}

// matching returns the names of the definitions that a policy activates, ordered, and those of them that are not
// established yet.
func matching(p activation.Policy, all []unstructured.Unstructured) (activated, waits []string) {
	activated = []string{}
	names := make([]string, len(all))
	established := map[string]bool{}
	for i := range all {
		names[i] = all[i].GetName()
		for _, c := range conditionsOf(&all[i]).Conditions {
			established[names[i]] = established[names[i]] ||
				c.Type == v1alpha1.TypeEstablished && c.Status == corev1.ConditionTrue
		}
	}
	for _, name := range activation.Matching(p.Patterns, names) {
		activated = append(activated, name)
		if !established[name] {
			waits = append(waits, name)
		}
	}
	slices.Sort(activated)
	slices.Sort(waits)
	return activated, waits
}

// healthOf returns the condition Healthy of a policy. It reports malformed patterns, and those that match no kind of an
// installed Provider.
func healthOf(p activation.Policy, all []unstructured.Unstructured) v1.Condition {
	var names []string
	for i := range all {
		names = append(names, all[i].GetName())
	}
	var problems []string
	isMalformed := false
	for _, pattern := range activation.Unmatched(p.Patterns, names) {
		if activation.CheckPattern(pattern) != nil {
			isMalformed = true
			problems = append(problems, fmt.Sprintf("%q is malformed, and matches nothing", pattern))
			continue
		}
		text := fmt.Sprintf("%q matches no kind that can be inactive", pattern)
		if alike := spelling.Alike(pattern, names); len(alike) > 0 {
			text += " (did you mean " + wording.Few(alike, len(alike), " or ") + "?)"
		}
		problems = append(problems, text)
	}
	if isMalformed {
		return v1alpha1.FailedPolicy(wording.Few(problems, mostProblems, "; "))
	}
	out := v1alpha1.RunningPolicy()
	out.Message = wording.Few(problems, mostProblems, "; ")
	return out
}

// mostProblems is the maximum number of patterns in a message.
const mostProblems = 10

// mostNamed is the maximum number of kinds in a message.
const mostNamed = 3

// establishedOf returns the condition Established of a policy: whether the API server serves all kinds that it
// activates (crossplane/crossplane#7822).
func establishedOf(activated, waits []string) v1.Condition {
	out := v1.Condition{Type: v1alpha1.TypeEstablished, Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonEstablished}
	switch {
	case len(activated) == 0:
		out.Status, out.Reason, out.Message = corev1.ConditionFalse, v1alpha1.ReasonPending, "The policy activates no kind."
	case len(waits) > 0:
		out.Status, out.Reason = corev1.ConditionFalse, v1alpha1.ReasonPending
		out.Message = "Waiting for " + wording.Few(waits, mostNamed, ", ") + "."
	}
	return out
}
