package certificates

import (
	"crypto/x509"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// issue must succeed.
func (w *simulation) issue(want ...Requirement) (map[string]Issued, time.Time) {
	w.t.Helper()
	issued, next, err := w.store().Issue(w.t.Context(), want)
	if err != nil {
		w.t.Fatal(err)
	}
	return issued, next
}

// The number of calls for a package does not depend on the number of packages, not even
// during a rotation.
func TestIssueReadsNoOthers(t *testing.T) {
	w := ourWorld(t)
	check := func(when string) {
		t.Helper()
		w.reads, w.lists, w.writes = 0, 0, 0
		issued, _ := w.issue(wanted[0], wanted[1])
		if w.reads != 3 || w.lists != 0 || w.writes != 0 || len(issued) != 2 {
			t.Errorf("%s: %d reads, %d lists, %d writes, %d certificates", when, w.reads, w.lists, w.writes, len(issued))
		}
	}
	check("nothing changes")
	w.edit(RootSecret, func(s *corev1.Secret) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, AnnotationRotate, "") })
	before := w.secret(RootSecret).Data[KeyCertificate]
	for turns := 0; ; turns++ {
		next := w.keep()
		check(next.String())
		w.connectAll(wanted)
		if root := w.secret(RootSecret); len(root.Data) == 2 && string(root.Data[KeyCertificate]) != string(before) {
			break
		}
		if turns > 10 {
			t.Fatal("the authority is not replaced")
		}
		w.clock.Set(next)
	}
}

// Packages maintain their own certificates for years, and one process the CA. Every
// certificate is trusted at each moment.
func TestYearsOfIssue(t *testing.T) {
	w := newSimulation(t)
	want := wanted[:3]
	w.years(start.AddDate(11, 0, 0), want, func() (time.Time, error) {
		_, next := w.issue(want[0], want[1])
		_, third := w.issue(want[2])
		for _, at := range []time.Time{third, w.keep()} {
			if next.IsZero() || !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		return next, nil
	})
}

// keep must succeed.
func (w *simulation) keep() time.Time {
	w.t.Helper()
	next, err := w.store().Keep(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return next
}

// Damaged Secrets are repaired by each process alone, and the CA is found again.
func TestIssueRepairs(t *testing.T) {
	for name, damage := range map[string]func(*simulation){
		"half a Secret": func(w *simulation) {
			w.edit(wanted[0].Secret, func(s *corev1.Secret) { delete(s.Data, keyPrivate) })
		},
		"no authority": func(w *simulation) { _ = w.client.Delete(t.Context(), w.secret(RootSecret)) },
		"another authority": func(w *simulation) {
			w.edit(RootSecret, func(s *corev1.Secret) { s.Data = newCrossplane(t, 0).root().Data })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := ourWorld(t)
			damage(w)
			issued, _ := w.issue(wanted[0])
			if got := issued[wanted[0].Secret]; len(got.Key) == 0 || len(got.Bundle) == 0 {
				t.Errorf("issued %+v", got)
			}
			w.keep()
			bundle, err := w.store().Bundle(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.verify(version{data: w.secret(wanted[0].Secret).Data}, bundle, x509.ExtKeyUsageServerAuth, w.clock.Now())
		})
	}
}

// A CA that does not exist stays missing: no runtime needs a certificate.
func TestKeepCreatesNoCA(t *testing.T) {
	w := newSimulation(t)
	if next := w.keep(); !next.IsZero() {
		t.Errorf("the next step is due at %s", next)
	}
	var list corev1.SecretList
	if err := w.client.List(t.Context(), &list); err != nil || len(list.Items) > 0 {
		t.Errorf("%d Secrets, %v; want none", len(list.Items), err)
	}
}
