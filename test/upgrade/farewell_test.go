package upgrade_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// A provider that is deleted works until its custom resources are gone, whose
// finalizers are its own: with the rights that it has, and also when its manager is
// started anew meanwhile.
func TestProgramStaysUntilItsResourcesAreGone(t *testing.T) {
	s := newStand(t)
	s.configure()
	p := provider("tidy", s.push("tidy", "tidy", ""))
	s.create(p)
	s.untilHealthy(p)
	things := []string{"tidied-1", "tidied-2"}
	for _, name := range things {
		s.create(newThing(name))
		s.untilThing(name, "has a finalizer", func(t metav1.Object) bool { return len(t.GetFinalizers()) > 0 })
	}
	// That a package is paused is no reason to keep it.
	pause := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"crossplane.io/paused":"true"}}}`))
	if err := s.client.Patch(t.Context(), p, pause); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	s.untilWaits(p)
	for _, name := range things {
		s.untilThing(name, "is deleted", func(t metav1.Object) bool { return t.GetDeletionTimestamp() != nil })
	}
	s.tidy(things[0])
	s.untilGone(newThing(things[0]))

	revision := p.Status.CurrentRevision
	s.stop()
	s.start(cluster.Start(t))
	wait.Until(t, patience, "the program runs again", func() (string, bool) {
		status, _ := s.supervisor.Status(revision)
		return fmt.Sprintf("%+v", status), status.Running
	})
	s.untilWaits(p)
	s.tidy(things[1])
	s.untilGone(newThing(things[1]))
	s.untilGone(thingDefinition())
	s.untilGone(p)
	wait.Until(t, patience, "the program has ended", func() (string, bool) {
		status, known := s.supervisor.Status(revision)
		return fmt.Sprintf("%+v", status), !known || !status.Running
	})
}

// thingDefinition is the definition that every version brings.
func thingDefinition() client.Object {
	d := &metav1.PartialObjectMetadata{}
	d.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	d.SetName("things.upgrade.test")
	return d
}

// untilWaits waits until a package that was deleted says for what it waits.
func (s *stand) untilWaits(p *v1.Provider) {
	s.Helper()
	s.until(p, "says for what it waits", func() bool {
		ready := p.GetCondition(v1.TypeReady)
		return p.DeletionTimestamp != nil && ready.Status == corev1.ConditionFalse && strings.Contains(ready.Message, "things.upgrade.test")
	})
}

func (s *stand) untilThing(name, what string, holds func(metav1.Object) bool) {
	s.Helper()
	wait.Until(s.T, patience, name+" "+what, func() (string, bool) {
		t := newThing(name)
		err := s.client.Get(s.Context(), client.ObjectKeyFromObject(t), t)
		return fmt.Sprint(err, t), err == nil && holds(t)
	})
}

// tidy lets the program do its part.
func (s *stand) tidy(name string) {
	s.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"upgrade.test/tidy":"true"}}}`))
	if err := s.client.Patch(s.Context(), newThing(name), patch); err != nil {
		s.Fatal(err)
	}
}

func (s *stand) untilGone(o client.Object) {
	s.Helper()
	wait.Until(s.T, patience, o.GetName()+" is gone", func() (string, bool) {
		err := s.client.Get(context.Background(), client.ObjectKeyFromObject(o), o)
		if err == nil {
			return fmt.Sprintf("%+v", o), false
		}
		// Its kind may be gone with it.
		return err.Error(), apierrors.IsNotFound(err) || strings.Contains(err.Error(), "no matches for kind")
	})
}
