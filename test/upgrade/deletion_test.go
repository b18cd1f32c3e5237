package upgrade_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// The runtime of a deleted provider keeps its permissions and runs until its custom resources, which
// have its finalizers, are deleted, also across a restart of the manager.
func TestRuntimeRunsUntilCustomResourcesAreDeleted(t *testing.T) {
	s := newSuite(t)
	s.configure()
	p := provider("tidy", s.push("tidy", "tidy", ""))
	s.Create(s, p)
	s.WaitReady(s, p)
	things := []string{"tidied-1", "tidied-2"}
	for _, name := range things {
		s.Create(s, newThing(name))
		s.untilThing(name, "has a finalizer", func(t metav1.Object) bool { return len(t.GetFinalizers()) > 0 })
	}
	// A paused package is deleted as well.
	pause := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"crossplane.io/paused":"true"}}}`))
	if err := s.Client.Patch(t.Context(), p, pause); err != nil {
		t.Fatal(err)
	}
	answer := []byte(`{"metadata":{"annotations":{"` + v1.AnnotationOnDelete + `":"cascade=100"}}}`)
	if err := s.Client.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, answer)); err != nil {
		t.Fatal(err)
	}
	if err := s.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	s.untilWaits(p)
	for _, name := range things {
		s.untilThing(name, "is deleted", func(t metav1.Object) bool { return t.GetDeletionTimestamp() != nil })
	}
	s.tidy(things[0])
	s.WaitGone(s, newThing(things[0]))

	revision := p.Status.CurrentRevision
	s.stop()
	s.start()
	wait.Until(t, env.Limit, "the program runs again", func() (string, bool) {
		status, _ := s.supervisor.Status(revision)
		return fmt.Sprintf("%+v", status), status.Running
	})
	s.untilWaits(p)
	s.tidy(things[1])
	s.WaitGone(s, newThing(things[1]))
	s.WaitGone(s, thingDefinition())
	s.WaitGone(s, p)
	wait.Until(t, env.Limit, "the program has ended", func() (string, bool) {
		status, known := s.supervisor.Status(revision)
		return fmt.Sprintf("%+v", status), !known || !status.Running
	})
}

// thingDefinition returns the CRD that every version contains.
func thingDefinition() client.Object {
	d := &metav1.PartialObjectMetadata{}
	d.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	d.SetName("things.upgrade.test")
	return d
}

// untilWaits waits until the status of a deleted package names the CRD that still has resources.
func (s *suite) untilWaits(p *v1.Provider) {
	s.Helper()
	s.WaitPackage(s, p, "names the CRD that it waits for", func() bool {
		ready := p.GetCondition(v1.TypeReady)
		return p.DeletionTimestamp != nil && ready.Status == corev1.ConditionFalse &&
			strings.Contains(ready.Message, "things.upgrade.test")
	})
}

func (s *suite) untilThing(name, what string, holds func(metav1.Object) bool) {
	s.Helper()
	wait.Until(s, env.Limit, name+" "+what, func() (string, bool) {
		t := newThing(name)
		err := s.Client.Get(s.Context(), client.ObjectKeyFromObject(t), t)
		return fmt.Sprint(err, t), err == nil && holds(t)
	})
}

// tidy lets the runtime remove its finalizer.
func (s *suite) tidy(name string) {
	s.Helper()
	patch := client.RawPatch(
		"application/merge-patch+json", []byte(`{"metadata":{"annotations":{"upgrade.test/tidy":"true"}}}`),
	)
	if err := s.Client.Patch(s.Context(), newThing(name), patch); err != nil {
		s.Fatal(err)
	}
}
