package certificates

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newCrossplaneSimulation returns a cluster in which Crossplane made all certificates.
func newCrossplaneSimulation(t *testing.T) *simulation {
	t.Helper()
	x := newCrossplane(t, 0)
	secrets := []client.Object{x.root()}
	for _, want := range wanted {
		secrets = append(secrets, x.leaf(t, want))
	}
	return newSimulation(t, secrets...)
}

func TestCrossplanesSecretsAreTakenOverUntouched(t *testing.T) {
	w := newCrossplaneSimulation(t)
	before := map[string]map[string][]byte{}
	for _, x := range wanted {
		before[x.Secret] = w.secret(x.Secret).Data
	}
	issued, next := w.ensure(wanted...)
	if w.writes != 0 || len(issued) != len(wanted) || next.Before(start.AddDate(6, 0, 0)) {
		t.Errorf("%d writes, %d certificates, next at %s", w.writes, len(issued), next)
	}
	owned := wanted[0]
	owned.Owner = requester("Provider", "a", "a-1")
	w.ensure(owned)
	for _, x := range wanted {
		if diff := cmp.Diff(before[x.Secret], w.secret(x.Secret).Data); diff != "" {
			t.Errorf("%s changed", x.Secret)
		}
	}
	w.connectAll(wanted)
}

// Crossplane's certificates are replaced when they are due, and every connection works at
// each moment.
func TestCrossplanesSecretsAreReplacedInTime(t *testing.T) {
	w := newCrossplaneSimulation(t)
	w.years(start.AddDate(7, 0, 0), wanted, func() (time.Time, error) {
		_, next, err := w.store().Ensure(t.Context(), wanted)
		return next, err
	})
	for _, x := range wanted {
		s := w.secret(x.Secret)
		if s.Labels[labelCertificate] != string(x.Usage) || len(certificatesIn(s.Data[KeyBundle])) != 1 {
			t.Errorf("%s was not replaced", x.Secret)
		}
	}
}

// A certificate that asks for more than Crossplane's has is another one.
func TestCrossplanesCertificateThatLacksAName(t *testing.T) {
	w := newCrossplaneSimulation(t)
	renamed := wanted[0]
	renamed.DNSNames = ServerNames("renamed", ns)
	issued, _ := w.ensure(renamed)
	if err := firstCertificate(issued[renamed.Secret].Cert).VerifyHostname("renamed." + ns + ".svc"); err != nil {
		t.Error(err)
	}
	w.connectAll(wanted)
}

// Another client replaces the CA Secret, as an update of Crossplane's chart does
// (crossplane/crossplane#7480): the certificates of the former CA are trusted until all are
// signed again.
func TestReplacedCAIsTrusted(t *testing.T) {
	w := newCrossplaneSimulation(t)
	w.ensure(wanted...)
	other := newCrossplane(t, 1)
	w.edit(RootSecret, func(s *corev1.Secret) { s.Data = other.root().Data })
	// Until the next turn, a client of webhooks that reads the CA Secret trusts no
	// certificate.
	w.ensure(wanted...)
	w.versions[RootSecret] = w.versions[RootSecret][len(w.versions[RootSecret])-1:]
	w.years(start.Add(5*w.overlap), wanted, func() (time.Time, error) {
		_, next, err := w.store().Ensure(t.Context(), wanted)
		return next, err
	})
	for _, x := range wanted {
		s := w.secret(x.Secret)
		if !bytes.Equal(s.Data[KeyBundle], certificatePEM(other.cert)) ||
			firstCertificate(s.Data[KeyCertificate]).CheckSignatureFrom(other.cert) != nil {
			t.Errorf("%s does not go by the new authority", x.Secret)
		}
	}
}

// foreignSecrets returns an authority that is neither Crossplane's nor ours.
func foreignSecrets(t *testing.T, n int) crossplane {
	t.Helper()
	key := rsaKeys()[n]
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "another CA"}, NotBefore: start.Add(-day),
		NotAfter: start.AddDate(1, n, 0),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	return crossplane{key, mustSign(t, template, template, key, key)}
}

func asCertManager(s *corev1.Secret) *corev1.Secret {
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, "cert-manager.io/certificate-name", s.Name)
	return s
}

func TestForeignCertificatesAreUsedUnchanged(t *testing.T) {
	for name, mark := range map[string]func(*corev1.Secret) *corev1.Secret{
		"cert-manager": asCertManager, "by hand": func(s *corev1.Secret) *corev1.Secret { return s },
	} {
		t.Run(name, func(t *testing.T) {
			theirs := mark(foreignSecrets(t, 0).leaf(t, wanted[0]))
			w := newSimulation(t, theirs)
			want := wanted[0]
			want.Owner = requester("Provider", "a", "a-1")
			issued, next := w.ensure(want, wanted[2])
			if diff := cmp.Diff(theirs.Data[KeyCertificate], issued[want.Secret].Cert); diff != "" ||
				next.After(start.Add(day)) {
				t.Errorf("not used, or not looked at again before %s", next)
			}
			if !bytes.Equal(issued[want.Secret].Bundle, theirs.Data[KeyBundle]) {
				t.Error("a client cannot verify the certificate")
			}
			// Their authority can speak for their server, and not for ours.
			if bytes.Contains(w.secret(wanted[2].Secret).Data[KeyBundle], theirs.Data[KeyBundle]) {
				t.Error("runtimes of xpkg trust a foreign CA")
			}
			w.edit(RootSecret, func(s *corev1.Secret) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, AnnotationRotate, "") })
			for range 10 {
				_, next := w.ensure(want, wanted[2])
				w.clock.Set(next)
			}
			got := w.secret(want.Secret)
			if diff := cmp.Diff(theirs.Data, got.Data); diff != "" || len(got.OwnerReferences) != 0 || len(got.Labels) != 0 {
				t.Error("the Secret was written")
			}
		})
	}
}

// cert-manager is not raced for a Secret that it has not filled yet.
func TestSecretOfCertManagerIsLeftAloneUntilItIsFilled(t *testing.T) {
	for name, data := range map[string]map[string][]byte{
		"empty": nil, "only a key": {keyPrivate: rsaPEM(rsaKeys()[0])},
		"expired": foreignSecrets(t, 0).leafUntil(t, wanted[0], start.Add(-time.Hour)).Data,
	} {
		t.Run(name, func(t *testing.T) {
			w := newSimulation(t, asCertManager(secretOf(wanted[0].Secret, data)))
			issued, next, err := w.store().Ensure(t.Context(), wanted)
			if !errors.Is(err, ErrNotReady) || next.IsZero() {
				t.Errorf("got %v, next at %s", err, next)
			}
			if len(issued) != len(wanted)-1 {
				t.Errorf("%d certificates: the others are not kept from what they need", len(issued))
			}
			if diff := cmp.Diff(data, w.secret(wanted[0].Secret).Data); diff != "" {
				t.Error("the Secret was written")
			}
		})
	}
}

// An authority of cert-manager signs; when cert-manager makes a new one, the former
// one is trusted for as long as it has to be.
func TestCAOfCertManagerIsUsed(t *testing.T) {
	first, second := foreignSecrets(t, 0), foreignSecrets(t, 1)
	w := newSimulation(t, asCertManager(first.root()))
	w.ensure(wanted...)
	if s := w.secret(RootSecret); len(s.Data) != 2 {
		t.Error("the Secret was written")
	}
	w.edit(RootSecret, func(s *corev1.Secret) {
		s.Data[KeyCertificate], s.Data[keyPrivate] = second.root().Data[KeyCertificate], second.root().Data[keyPrivate]
	})
	w.ensure(wanted...)
	w.versions[RootSecret] = w.versions[RootSecret][len(w.versions[RootSecret])-1:]
	w.years(start.Add(20*w.overlap), wanted, func() (time.Time, error) {
		_, next, err := w.store().Ensure(t.Context(), wanted)
		return next, err
	})
	s := w.secret(RootSecret)
	if diff := cmp.Diff(second.root().Data, s.Data); diff != "" {
		t.Errorf("something is left over, or was changed: %s", diff)
	}
	for _, x := range wanted {
		if firstCertificate(w.secret(x.Secret).Data[KeyCertificate]).CheckSignatureFrom(second.cert) != nil {
			t.Errorf("%s goes by the former authority", x.Secret)
		}
	}
}

func TestSecretsWithOtherContent(t *testing.T) {
	w := newSimulation(t, secretOf(wanted[0].Secret, map[string][]byte{"password": []byte("x")}))
	issued, _, err := w.store().Ensure(t.Context(), wanted)
	if !errors.Is(err, ErrSecretTaken) || len(issued) != len(wanted)-1 {
		t.Errorf("%d certificates, %v", len(issued), err)
	}
	if got := w.secret(wanted[0].Secret).Data; len(got) != 1 {
		t.Error("the Secret was written")
	}
	if want := "Secret " + wanted[0].Secret + ", which has other content"; !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("the error %q lacks %q", err, want)
	}

	w = newSimulation(
		t, secretOf(wanted[0].Secret, map[string][]byte{"password": []byte("x")}),
		secretOf(wanted[1].Secret, map[string][]byte{"password": []byte("x")}),
	)
	_, _, err = w.store().Ensure(t.Context(), wanted)
	if message := fmt.Sprint(err); !strings.Contains(message, wanted[0].Secret) ||
		!strings.Contains(message, wanted[1].Secret) || strings.Contains(message, "\n") {
		t.Errorf("two Secrets: %q", message)
	}
}
