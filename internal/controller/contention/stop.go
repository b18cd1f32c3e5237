package contention

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// ErrContended is the code for an object that another client keeps changing.
var ErrContended = errcode.Code{
	Name: "ObjectContended", Class: errcode.Conflict,
	Cause: "Another client keeps changing or deleting an object that the manager writes, so the manager writes it only once in ten minutes.",
	Fix: "Stop the client with the field manager in the message from writing the object. The manager continues when it has stopped, " +
		"and at once when the spec of the package changes. `xpkg doctor` finds a Crossplane core that writes packages.",
}

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code { return []errcode.Code{ErrContended} }

// Stop describes an object that the manager has stopped writing.
type Stop struct {
	Ref plan.Ref
	Decision
	// Last is the last change by another client.
	Last Change
}

// Error returns the reason, which does not name the object.
func (s Stop) Error() string {
	return fmt.Sprintf("%s %s, after the manager had written it %d times since %s; the manager writes it again at %s",
		s.Last.Client(), s.Last.action(), s.Writes, format(s.Since), format(s.RetryAt))
}

// Client returns the client that made the change, as the subject of a message.
func (c Change) Client() string {
	if c.Writer == "" {
		return "another client"
	}
	return fmt.Sprintf("the field manager %q", c.Writer)
}

func (c Change) action() string {
	switch {
	case c.Deleted:
		return "deleted it"
	case c.At.IsZero():
		return "changed it"
	}
	return "changed it at " + format(c.At)
}

func format(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// failure returns the error of a write that the brake refuses.
func (s Stop) failure() error {
	name := s.Ref.Name
	namespace := ""
	if s.Ref.Namespace != "" {
		name, namespace = s.Ref.Namespace+"/"+name, " --namespace "+s.Ref.Namespace
	}
	resource := strings.ToLower(s.Ref.Kind)
	if group := s.Ref.GroupVersionKind().Group; group != "" {
		resource += "." + group
	}
	return ErrContended.New(s, "another client keeps changing %s %s", s.Ref.Kind, name).WithDo(
		"Stop the other client from writing it: `kubectl get %s %s%s -o yaml --show-managed-fields` shows its writes, and "+
			"`xpkg doctor` finds a Crossplane core that writes packages. "+
			"The manager continues when the other client has stopped, and at once when the spec of the package changes.",
		resource, s.Ref.Name, namespace)
}

// StopOf returns the Stop in the chain of a write error, and false if there is none.
func StopOf(err error) (Stop, bool) {
	var s Stop
	return s, errors.As(err, &s)
}

// RetryAt returns the time of the next write after a write error, and false if the error contains
// no Stop.
func RetryAt(err error) (time.Time, bool) {
	s, ok := StopOf(err)
	return s.RetryAt, ok
}

// LastChange returns a function that reads the last change of an object by another client from its managed fields.
func LastChange(live client.Reader) func(ctx context.Context, ref plan.Ref, subresource string) Change {
	return func(ctx context.Context, ref plan.Ref, subresource string) Change {
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(ref.GroupVersionKind())
		err := live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, o)
		if err != nil {
			return Change{Deleted: apierrors.IsNotFound(err)}
		}
		change := lastChange(o.ManagedFields, subresource)
		change.UID = o.UID
		return change
	}
}

// lastChange returns the last write of a field manager other than the manager's own.
func lastChange(fields []metav1.ManagedFieldsEntry, subresource string) Change {
	var out Change
	for _, f := range fields {
		if f.Manager == plan.FieldManager || f.Subresource != subresource {
			continue
		}
		at := time.Time{}
		if f.Time != nil {
			at = f.Time.Time
		}
		if out.Writer == "" || at.After(out.At) {
			out = Change{Writer: f.Manager, At: at}
		}
	}
	return out
}
