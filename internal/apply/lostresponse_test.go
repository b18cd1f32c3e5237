package apply_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// A write whose response was lost is repeated. If the server then reports that the
// object exists or has changed, the content digest of the object shows whether the
// first write succeeded.
//
// hardening: J6
func TestLostAnswers(t *testing.T) {
	ref := definition("lost.apply.test")
	owners := []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Provider", Name: "p", UID: "p", Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	digest := map[string]string{plan.ContentDigestAnnotation: "sha256:1", "other": "x"}
	create := plan.Change{
		Action: plan.Create, Ref: ref, Annotations: digest, Labels: map[string]string{"l": "1"}, Owners: owners,
	}
	update := create
	update.Action, update.UID, update.ResourceVersion = plan.Update, "u", "1"
	own := plan.Change{
		Action: plan.Own, Ref: ref, MetadataOnly: true, UID: "u", ResourceVersion: "1", Owners: owners,
		Labels: map[string]string{"l": "1"}, RemoveLabels: []string{"old"}, RemoveAnnotations: []string{"older"},
	}
	bare := create
	bare.Annotations = nil

	ours := metav1.ObjectMeta{
		Name: ref.Name, UID: "u", ResourceVersion: "2", Generation: 4, Labels: map[string]string{"l": "1", "theirs": "1"},
		Annotations: digest, OwnerReferences: owners,
	}
	but := func(change func(*metav1.ObjectMeta)) metav1.ObjectMeta {
		m := ours.DeepCopy()
		change(m)
		return *m
	}
	exists, conflict := statusReply(409, metav1.StatusReasonAlreadyExists), statusReply(409, metav1.StatusReasonConflict)
	carried := plan.Written{UID: "u", Generation: 4}
	tests := map[string]struct {
		change  plan.Change
		refusal reply
		live    reply
		want    plan.Written // nothing when it ends with ObjectMoved
	}{
		"created": {create, exists, holdsObject(ours), carried},
		"created by another": {
			create, exists, holdsObject(but(func(m *metav1.ObjectMeta) { m.Annotations = nil })), plan.Written{},
		},
		"created with other content": {
			create, exists,
			holdsObject(but(func(m *metav1.ObjectMeta) { m.Annotations[plan.ContentDigestAnnotation] = "sha256:2" })),
			plan.Written{},
		},
		"created for another": {
			create, exists, holdsObject(but(func(m *metav1.ObjectMeta) { m.OwnerReferences[0].Name = "q" })), plan.Written{},
		},
		"created with another owner": {
			create, exists,
			holdsObject(but(func(m *metav1.ObjectMeta) { m.OwnerReferences = append(m.OwnerReferences, owners[0]) })),
			plan.Written{},
		},
		"created, not controlled": {
			create, exists, holdsObject(but(func(m *metav1.ObjectMeta) { m.OwnerReferences[0].Controller = nil })),
			plan.Written{},
		},
		"created and changed since": {
			create, exists, holdsObject(but(func(m *metav1.ObjectMeta) { m.ManagedFields = wrote("kubectl", `{"f:spec":{}}`) })),
			plan.Written{UID: "u"},
		},
		"created and given status": {
			create, exists,
			holdsObject(but(func(m *metav1.ObjectMeta) { m.ManagedFields = wrote("server", `{"f:status":{}}`) })), carried,
		},
		"created and being deleted": {
			create, exists,
			holdsObject(but(func(m *metav1.ObjectMeta) { m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} })),
			plan.Written{},
		},
		"created and gone":         {create, exists, statusReply(404, metav1.StatusReasonNotFound), plan.Written{}},
		"created without a digest": {bare, exists, holdsObject(ours), plan.Written{}},
		"updated":                  {update, conflict, holdsObject(ours), carried},
		"updated by another": {
			update, conflict,
			holdsObject(but(func(m *metav1.ObjectMeta) { m.Annotations[plan.ContentDigestAnnotation] = "sha256:0" })),
			plan.Written{},
		},
		"updated and replaced": {
			update, conflict, holdsObject(but(func(m *metav1.ObjectMeta) { m.UID = "v" })), plan.Written{},
		},
		"owners and labels": {own, conflict, holdsObject(ours), carried},
		"a label of another": {
			own, conflict, holdsObject(but(func(m *metav1.ObjectMeta) { m.Labels["l"] = "2" })), plan.Written{},
		},
		"a label that is to go": {
			own, conflict, holdsObject(but(func(m *metav1.ObjectMeta) { m.Labels["old"] = "1" })), plan.Written{},
		},
		"an annotation that is to go": {
			own, conflict, holdsObject(but(func(m *metav1.ObjectMeta) { m.Annotations["older"] = "1" })), plan.Written{},
		},
		"carried out by the second": {update, holdsObject(ours), nil, carried},
		"released since": {
			own, conflict, holdsObject(but(func(m *metav1.ObjectMeta) { m.OwnerReferences = nil })), plan.Written{},
		},
	}
	for name, tc := range tests {
		for kind, lost := range map[string]reply{
			"reset": loses(io.ErrUnexpectedEOF), "timeout": loses(context.DeadlineExceeded),
			"503": statusReply(503, metav1.StatusReasonServiceUnavailable, "Retry-After", "1"),
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, server := play(t, lost, tc.refusal, tc.live)
					got, err := c.Run(t.Context(), plan.Plan{Changes: []plan.Change{tc.change}}, always([]byte(`{"spec":{}}`)))
					want := map[plan.Ref]plan.Written{}
					if tc.want.UID != "" {
						want[ref] = tc.want
					}
					if moved := len(want) == 0; moved != errors.Is(err, apply.ErrMoved) || !moved && err != nil {
						t.Errorf("got %v", err)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("what was written (-want +got):\n%s", diff)
					}
					if tc.live != nil &&
						server.calls[len(server.calls)-1] != "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+ref.Name {
						t.Errorf("calls: %v", server.calls)
					}
				})
			})
		}
	}
}

func wrote(manager, fields string) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}}
}

// Without a lost answer before it, a refusal is believed at once, and so is the
// first of a server that throttled.
func TestRefusalsAreNotReadAgain(t *testing.T) {
	tests := map[string][]reply{
		"at once": {statusReply(409, metav1.StatusReasonAlreadyExists)},
		"after throttled": {
			statusReply(429, metav1.StatusReasonTooManyRequests), statusReply(409, metav1.StatusReasonAlreadyExists),
		},
	}
	for name, replies := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, server := play(t, replies...)
				if err := operations["POST"](t, c); !errors.Is(err, apply.ErrMoved) {
					t.Errorf("got %v", err)
				}
				if len(server.calls) != len(replies) {
					t.Errorf("calls: %v", server.calls)
				}
			})
		})
	}
}

// When ctx ends, the writes that are under way are finished and no others begin.
//
// hardening: J8
func TestStoppedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var begun atomic.Int64
		c, _ := play(t, func(r *http.Request) (*http.Response, error) {
			if begun.Add(1) == 10 {
				cancel()
			}
			select {
			case <-r.Context().Done():
				return nil, r.Context().Err()
			case <-time.After(time.Second):
				return holdsObject(metav1.ObjectMeta{UID: "u"})(r)
			}
		})
		var p plan.Plan
		for i := range 100 {
			p.Changes = append(p.Changes, plan.Change{
				Action: plan.Create, Ref: definition("stop" + strconv.Itoa(i) + ".apply.test"),
			})
		}
		written, err := c.Run(ctx, p, always([]byte(`{}`)))
		if !errors.Is(err, apply.ErrStopped) || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if len(written) != 10 || begun.Load() != 10 {
			t.Errorf("%d writes begun and %d finished, want 10", begun.Load(), len(written))
		}
	})
}

// A run that is stopped while the server wants not to be asked does not wait.
func TestStoppedPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		c, _ := play(t, statusReply(429, metav1.StatusReasonTooManyRequests, "Retry-After", "20"))
		_, err := c.Run(
			ctx, plan.Plan{Changes: []plan.Change{{Action: plan.Create, Ref: definition("a.apply.test")}}}, always([]byte(`{}`)),
		)
		if !errors.Is(err, apply.ErrStopped) || time.Since(began) != 3*time.Second {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
	})
}

// A read ends at once when its context is canceled.
func TestStoppedReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		c, server := play(t, func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		_, err := c.Metadata(ctx, many())
		if !errors.Is(err, apply.ErrStopped) || !errors.Is(err, context.DeadlineExceeded) || len(server.calls) != 1 {
			t.Errorf("got %v after %v", err, server.calls)
		}
	})
}
