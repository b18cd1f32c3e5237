package certificates

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/internal/testing/lane"
)

// rotate runs a whole change of authorities from its announcement, with a process
// that starts again after each failure.
func rotate(w *simulation) {
	w.t.Helper()
	w.years(start.Add(6*w.overlap), wanted, func() (time.Time, error) {
		for {
			_, next, err := w.store().Ensure(w.t.Context(), wanted)
			if err == nil {
				return next, nil
			}
			w.connectAll(wanted)
			// A process that starts again does not start at the same moment.
			w.clock.Set(w.clock.Now().Add(time.Second))
		}
	})
}

func (w *simulation) askForRotation() {
	w.edit(RootSecret, func(s *corev1.Secret) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, AnnotationRotate, "") })
}

// rotatedOnce fails unless there is one new authority and nothing of a former one.
func (w *simulation) rotatedOnce() {
	w.t.Helper()
	s := w.secret(RootSecret)
	if len(s.Data) != 2 || len(s.Annotations) != 0 {
		w.t.Errorf("the change is not at its end: %d keys, %v", len(s.Data), s.Annotations)
	}
	authorities := map[string]bool{}
	for _, v := range w.versions[RootSecret] {
		authorities[string(v.data[KeyCertificate])] = true
	}
	if len(authorities) != 2 {
		w.t.Errorf("%d authorities have signed", len(authorities))
	}
	for _, x := range wanted {
		if firstCertificate(w.secret(x.Secret).Data[KeyCertificate]).
			CheckSignatureFrom(firstCertificate(s.Data[KeyCertificate])) != nil {
			w.t.Errorf("%s goes by the former authority", x.Secret)
		}
	}
}

// The process is killed before or after each write of a change of authorities, and
// everybody can talk at each moment all the same.
func TestCrashAtEachWrite(t *testing.T) {
	lane.Full(t, "internal/certificates.TestConflictsAndLostAnswers")
	crashes := 0
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			w := newCrossplaneSimulation(t)
			w.askForRotation()
			w.writes = 0
			crashed := false
			w.fail = func(write int, made bool) error {
				if write == n && made == after {
					crashed = true
					return errCrash
				}
				return nil
			}
			rotate(w)
			if w.fail = nil; !crashed {
				break
			}
			crashes++
			w.rotatedOnce()
		}
	}
	// The authority's Secret is written five times, and each certificate's three times.
	if want := 2 * (5 + 3*len(wanted)); crashes != want {
		t.Errorf("%d crashes, want %d", crashes, want)
	}
}

// Some writes lose against the write of another client, and some responses are lost.
//
// hardening: J2
func TestConflictsAndLostAnswers(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2))
	w := ourWorld(t)
	w.askForRotation()
	w.fail = func(_ int, made bool) error {
		switch random.IntN(4) {
		case 0:
			return errCrash
		case 1:
			if !made {
				return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "x", errCrash)
			}
		}
		return nil
	}
	rotate(w)
	w.rotatedOnce()
}

// Two managers do everything at once: whenever one is about to write, the other has
// just done a whole turn.
func TestAnotherManagerIsAlwaysFaster(t *testing.T) {
	w := newSimulation(t)
	inside := false
	w.before = func() {
		if inside {
			return
		}
		inside = true
		defer func() { inside = false }()
		w.ensure(wanted...)
	}
	w.ensure(wanted...)
	w.connectAll(wanted)
	inside = true
	w.askForRotation()
	inside = false
	rotate(w)
	w.rotatedOnce()
	// Nothing was made twice: of each certificate there is one from the start and
	// one from the new authority.
	for _, x := range wanted {
		certificates := map[string]bool{}
		for _, v := range w.versions[x.Secret] {
			certificates[string(v.data[KeyCertificate])] = true
		}
		if len(certificates) != 2 {
			t.Errorf("%s: %d certificates", x.Secret, len(certificates))
		}
	}
}

// After events in any order, every Secret is complete again, and in the end one CA has
// signed all certificates.
func TestSecretsConvergeAfterRandomEvents(t *testing.T) {
	if testing.Short() {
		t.Skip("makes many authorities: skipped with -short")
	}
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newCrossplaneSimulation(t)
		for range 15 {
			w.happen(random)
			w.ensure(wanted...)
			for name, all := range w.versions {
				w.versions[name] = all[len(all)-1:]
			}
			w.connectAll(wanted)
			w.clock.Set(w.clock.Now().Add(time.Duration(random.Int64N(int64(2 * w.overlap)))))
		}
		for range 10 {
			_, next := w.ensure(wanted...)
			w.clock.Set(next)
		}
		w.ensure(wanted...)
		if s := w.secret(RootSecret); len(s.Data) != 2 {
			t.Errorf("seed %d: %d keys are left, %v", seed, len(s.Data), s.Annotations)
		}
	}
}

// happen changes a Secret unexpectedly.
func (w *simulation) happen(random *rand.Rand) {
	names := []string{RootSecret}
	for _, x := range wanted {
		names = append(names, x.Secret)
	}
	name := names[random.IntN(len(names))]
	switch random.IntN(5) {
	case 0:
		if err := w.client.Delete(w.t.Context(), w.secret(name)); err != nil {
			w.t.Fatal(err)
		}
	case 1:
		w.edit(name, func(s *corev1.Secret) {
			keys := slices.Sorted(maps.Keys(s.Data))
			delete(s.Data, keys[random.IntN(len(keys))])
		})
	case 2:
		w.edit(name, func(s *corev1.Secret) {
			keys := slices.Sorted(maps.Keys(s.Data))
			s.Data[keys[random.IntN(len(keys))]] = []byte("damaged")
		})
	case 3:
		w.edit(RootSecret, func(s *corev1.Secret) { use(s, newCrossplane(w.t, random.IntN(2)).root()) })
	default:
		w.askForRotation()
	}
}

func TestManyManagersAtOnce(t *testing.T) {
	w := newSimulation(t)
	everybody := func() {
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				if _, _, err := w.store().Ensure(context.WithoutCancel(t.Context()), wanted); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	}
	everybody()
	w.connectAll(wanted)
	w.askForRotation()
	for range 6 {
		everybody()
		w.connectAll(wanted)
		w.clock.Set(w.clock.Now().Add(w.overlap))
	}
	w.rotatedOnce()
}
