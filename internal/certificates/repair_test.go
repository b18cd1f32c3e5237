package certificates

import (
	"bytes"
	"crypto/x509"
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// Missing and damaged parts of a Secret are repaired, and all others stay.
func TestHalfFilledSecrets(t *testing.T) {
	other := newCrossplane(t, 1)
	for name, damage := range map[string]struct {
		do func(*corev1.Secret)
		// keeps reports that the certificate itself stays.
		keeps bool
	}{
		"no data":        {do: func(s *corev1.Secret) { s.Data = nil }},
		"no certificate": {do: func(s *corev1.Secret) { delete(s.Data, KeyCertificate) }},
		"no key":         {do: func(s *corev1.Secret) { delete(s.Data, keyPrivate) }},
		"no bundle":      {do: func(s *corev1.Secret) { delete(s.Data, KeyBundle) }, keeps: true},
		"only a bundle":  {do: func(s *corev1.Secret) { s.Data = map[string][]byte{KeyBundle: s.Data[KeyBundle]} }},
		"empty values": {
			do: func(s *corev1.Secret) { s.Data[KeyCertificate], s.Data[keyPrivate] = nil, []byte{} },
		},
		"garbage":                 {do: func(s *corev1.Secret) { s.Data[KeyCertificate] = []byte("garbage") }},
		"a cut key":               {do: func(s *corev1.Secret) { s.Data[keyPrivate] = s.Data[keyPrivate][:100] }},
		"another's key":           {do: func(s *corev1.Secret) { s.Data[keyPrivate] = rsaPEM(rsaKeys()[1]) }},
		"a certificate as bundle": {do: func(s *corev1.Secret) { s.Data[KeyBundle] = s.Data[KeyCertificate] }, keeps: true},
		"another's bundle": {
			do: func(s *corev1.Secret) { s.Data[KeyBundle] = certificatePEM(other.cert) }, keeps: true,
		},
		"for clients": {do: func(s *corev1.Secret) { use(s, newCrossplane(t, 0).leaf(t, wanted[1])) }},
		"expired": {
			do: func(s *corev1.Secret) { use(s, newCrossplane(t, 0).leafUntil(t, wanted[0], start.Add(-time.Hour))) },
		},
	} {
		for whose, w := range map[string]*simulation{"ours": ourWorld(t), "crossplane": newCrossplaneSimulation(t)} {
			t.Run(name+"/"+whose, func(t *testing.T) {
				w.t = t
				w.ensure(wanted...)
				before := w.secret(wanted[0].Secret).Data
				w.edit(wanted[0].Secret, func(s *corev1.Secret) {
					damage.do(s)
					if s.Data != nil {
						s.Data["extra"] = []byte("of another program")
					}
				})
				w.ensure(wanted...)
				s := w.secret(wanted[0].Secret)
				w.versions[s.Name] = w.versions[s.Name][len(w.versions[s.Name])-1:]
				w.connectAll(wanted)
				if kept := bytes.Equal(before[KeyCertificate], s.Data[KeyCertificate]); kept != damage.keeps {
					t.Errorf("the certificate was kept: %v", kept)
				}
				if s.Data["extra"] == nil && name != "no data" {
					t.Error("a key of another program was removed")
				}
			})
		}
	}
}

func use(s, other *corev1.Secret) {
	for key, value := range other.Data {
		s.Data[key] = value
	}
}

// The CA Secret is damaged in every way; certificates in use stay trusted.
func TestDamagedCA(t *testing.T) {
	for name, damage := range map[string]struct {
		do func(*corev1.Secret)
		// same reports that the CA stays the same.
		same bool
	}{
		"no data":                {do: func(s *corev1.Secret) { s.Data = nil }},
		"no certificate":         {do: func(s *corev1.Secret) { delete(s.Data, KeyCertificate) }, same: true},
		"no key":                 {do: func(s *corev1.Secret) { delete(s.Data, keyPrivate) }},
		"garbage as certificate": {do: func(s *corev1.Secret) { s.Data[KeyCertificate] = []byte("x") }, same: true},
		"garbage as key":         {do: func(s *corev1.Secret) { s.Data[keyPrivate] = []byte("x") }},
		"another's key":          {do: func(s *corev1.Secret) { s.Data[keyPrivate] = rsaPEM(rsaKeys()[1]) }},
		"both of a server":       {do: func(s *corev1.Secret) { use(s, newCrossplane(t, 0).leaf(t, wanted[0])) }},
		"a damaged next":         {do: func(s *corev1.Secret) { s.Data[keyNextCertificate] = []byte("x") }, same: true},
		"a next without its key": {
			do: func(s *corev1.Secret) { s.Data[keyNextCertificate] = certificatePEM(newCrossplane(t, 1).cert) }, same: true,
		},
		"trusted garbage": {do: func(s *corev1.Secret) { s.Data[keyTrusted] = []byte("x") }, same: true},
		"marks that cannot be read": {do: func(s *corev1.Secret) {
			s.Annotations = map[string]string{annotationCADistributedAt: "x", annotationCARotatedAt: "y"}
		}, same: true},
		"marks from the future": {do: future, same: true},
		"marks about something else": {do: func(s *corev1.Secret) {
			s.Annotations = map[string]string{annotationCADistributedAt: Mark{fingerprint(), start.Add(-day)}.String()}
		}, same: true},
		"a certificate among trusted": {do: func(s *corev1.Secret) {
			s.Data[keyTrusted] = newCrossplane(t, 0).leaf(t, wanted[0]).Data[KeyCertificate]
		}, same: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := ourWorld(t)
			before := w.secret(RootSecret).Data[KeyCertificate]
			w.edit(RootSecret, damage.do)
			w.ensure(wanted...)
			w.versions[RootSecret] = w.versions[RootSecret][len(w.versions[RootSecret])-1:]
			w.years(start.Add(6*w.overlap), wanted, func() (time.Time, error) {
				_, next, err := w.store().Ensure(t.Context(), wanted)
				return next, err
			})
			s := w.secret(RootSecret)
			if same := bytes.Equal(before, s.Data[KeyCertificate]); same != damage.same {
				t.Errorf("it is the same authority: %v", same)
			}
			for _, x := range wanted {
				if firstCertificate(w.secret(x.Secret).Data[KeyCertificate]).
					CheckSignatureFrom(firstCertificate(s.Data[KeyCertificate])) != nil {
					t.Errorf("%s goes by another authority", x.Secret)
				}
			}
		})
	}
}

// A CA that cannot sign a certificate is reported, and not retried forever.
func TestCAWithoutSigningUsageIsReplaced(t *testing.T) {
	key := rsaKeys()[0]
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: crossplaneName, NotBefore: start.Add(-day), NotAfter: start.AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedDNSDomains: []string{"example.org"}, PermittedDNSDomainsCritical: true,
	}
	x := crossplane{key, mustSign(t, template, template, key, key)}
	w := newSimulation(t, x.root())
	if _, _, err := w.store().Ensure(t.Context(), wanted); !errors.Is(err, ErrAuthority) || w.writes != 0 {
		t.Errorf("%d writes, %v", w.writes, err)
	}
}

func future(s *corev1.Secret) {
	s.Annotations = map[string]string{
		AnnotationRotate: "", annotationCADistributedAt: Mark{fingerprint(), start.Add(day)}.String(),
		annotationCARotatedAt: Mark{fingerprint(), start.Add(day)}.String(),
	}
	delete(s.Annotations, AnnotationRotate)
}

func TestDeletedCAIsReplaced(t *testing.T) {
	w := ourWorld(t)
	if err := w.client.Delete(t.Context(), w.secret(RootSecret)); err != nil {
		t.Fatal(err)
	}
	delete(w.versions, RootSecret)
	w.ensure(wanted...)
	w.versions[RootSecret] = w.versions[RootSecret][len(w.versions[RootSecret])-1:]
	w.years(start.Add(6*w.overlap), wanted, func() (time.Time, error) {
		_, next, err := w.store().Ensure(t.Context(), wanted)
		return next, err
	})
}

func TestParseMark(t *testing.T) {
	m := Mark{Fingerprint: fingerprint(), Since: start}
	if diff := cmp.Diff(m, parseMark(m.String())); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"", "x", m.Fingerprint, m.Fingerprint + " ", m.Fingerprint +
		"x2026-01-01T00:00:00Z", m.String() + "x"} {
		if got := parseMark(text); got != (Mark{}) {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// Reading a Secret with any content does no harm.
func FuzzReadSecrets(f *testing.F) {
	w := ourWorld(f)
	s := w.secret(wanted[0].Secret).Data
	root := w.secret(RootSecret).Data
	f.Add(s[KeyCertificate], s[keyPrivate], s[KeyBundle], "")
	f.Add(root[KeyCertificate], root[keyPrivate], root[KeyCertificate], Mark{fingerprint(), start}.String())
	f.Add(root[KeyCertificate], rsaPEM(rsaKeys()[0]), []byte("x"), "y")
	f.Fuzz(func(t *testing.T, certificate, key, bundle []byte, mark string) {
		secret := secretOf("x", map[string][]byte{
			KeyCertificate: certificate, keyPrivate: key, KeyBundle: bundle, keyTrusted: bundle, keyNextCertificate: certificate,
			keyNextPrivate: key,
		})
		secret.Annotations = map[string]string{annotationCADistributedAt: mark, annotationCARotatedAt: mark}
		ca := readCA(secret, start)
		leaf := readLeaf("x", secret, &wanted[0], ca, start)
		if (leaf.Certificate == nil) != (leaf.Fault != "") || leaf.Certificate != nil && leaf.Issuer == nil {
			t.Errorf("%+v", leaf)
		}
		Plan(start, ca, []Leaf{leaf}, Policy{Settled: true})
	})
}
