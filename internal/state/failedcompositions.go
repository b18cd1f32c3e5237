package state

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/activation"
)

// FailedCompositions selects the events of composite resources whose composition failed: Crossplane records a warning
// with this reason.
func FailedCompositions() fields.Selector {
	return fields.SelectorFromSet(fields.Set{"type": corev1.EventTypeWarning, "reason": "ComposeResources"})
}

// EventIndexes are the indexes that a cache needs to list these events.
func EventIndexes() map[string]client.IndexerFunc {
	return map[string]client.IndexerFunc{
		"type":   func(o client.Object) []string { return []string{o.(*corev1.Event).Type} },
		"reason": func(o client.Object) []string { return []string{o.(*corev1.Event).Reason} },
	}
}

// OnlyMissedKinds reduces such an event to what [Kinds.Failed] reads.
func OnlyMissedKinds(o any) (any, error) {
	e, ok := o.(*corev1.Event)
	if !ok {
		return o, nil
	}
	out := &corev1.Event{
		ObjectMeta: e.ObjectMeta, Type: e.Type, Reason: e.Reason, InvolvedObject: e.InvolvedObject,
	}
	out.ManagedFields, out.Annotations, out.Labels = nil, nil, nil
	if len(activation.MissedIn(e.Message)) > 0 {
		out.Message = e.Message
	}
	return out, nil
}

// A FailedComposition is a composite resource whose composition failed, because kinds are not served.
type FailedComposition struct {
	Of  *corev1.ObjectReference
	Use activation.Use
}

// Failed returns the composite resources whose composition failed because kinds are not served, according to the events
// of Crossplane, which an API server keeps for an hour. A client that may not read them finds none.
func (k Kinds) Failed(ctx context.Context) ([]FailedComposition, error) {
	var all corev1.EventList
	err := k.Reader.List(
		ctx, &all, client.MatchingFieldsSelector{Selector: FailedCompositions()}, client.UnsafeDisableDeepCopy,
	)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	var out []FailedComposition
	for _, e := range all.Items {
		if kinds := activation.MissedIn(e.Message); len(kinds) > 0 {
			of := e.InvolvedObject
			by := activation.ByComposite(strings.ToLower(of.Kind), of.Name)
			out = append(out, FailedComposition{&of, activation.Use{By: by, Kinds: kinds, Failed: true}})
		}
	}
	return out, nil
}
