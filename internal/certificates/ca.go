package certificates

import (
	"crypto"
	"crypto/x509"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// CA is the content of the CA Secret.
type CA struct {
	// Current signs certificates; nil if the Secret has no complete and valid CA.
	Current *Signer
	// Next signs certificates once all users trust it.
	Next *Signer
	// Trusted are further trusted certificates.
	Trusted []*x509.Certificate
	// Orphan is a key without its certificate.
	Orphan crypto.Signer

	// Carried records the bundle that every Secret has, and Replaced the CA that signed every certificate,
	// each with the time of the first observation.
	Carried, Replaced Mark
	// Rotate reports whether a rotation of the CA was requested.
	Rotate bool
	// Foreign reports whether another program, such as cert-manager, maintains the CA. The CA is then used,
	// and only the bundle is written.
	Foreign bool
}

// Mark records since when a set of certificates is in use.
type Mark struct {
	Fingerprint string
	Since       time.Time
}

func (m Mark) String() string { return m.Fingerprint + " " + m.Since.UTC().Format(time.RFC3339) }

// parseMark returns nil for an invalid text.
func parseMark(text string) Mark {
	if len(text) < 34 {
		return Mark{}
	}
	since, err := time.Parse(time.RFC3339, text[33:])
	if err != nil || text[32] != ' ' {
		return Mark{}
	}
	return Mark{Fingerprint: text[:32], Since: since}
}

// holds reports whether the mark records a fingerprint. A mark with a time in the future, from a wrong clock, does not
// count.
func (m Mark) holds(fingerprint string, now time.Time) bool {
	return m.Fingerprint == fingerprint && !m.Since.After(now)
}

// Bundle contains the CA certificates that are trusted now.
func (ca CA) Bundle(now time.Time) []*x509.Certificate {
	var all []*x509.Certificate
	if ca.Current != nil {
		all = append(all, ca.Current.Certificate)
	}
	if ca.Next != nil {
		all = append(all, ca.Next.Certificate)
	}
	all = append(all, ca.Trusted...)
	return distinct(slices.DeleteFunc(all, func(c *x509.Certificate) bool { return now.After(c.NotAfter) }))
}

// retired returns the certificates of the bundle that no longer sign.
func (ca CA) retired(now time.Time) []*x509.Certificate {
	return slices.DeleteFunc(ca.Bundle(now), func(c *x509.Certificate) bool {
		return ca.Current != nil && c.Equal(ca.Current.Certificate) || ca.Next != nil && c.Equal(ca.Next.Certificate)
	})
}

// readCA reads the CA Secret; it returns nil if the Secret does not exist. A damaged CA is treated as
// missing, but a certificate without its key stays trusted: it may have signed certificates in use.
func readCA(secret *corev1.Secret, now time.Time) CA {
	if secret == nil {
		return CA{}
	}
	_, rotate := secret.Annotations[AnnotationRotate]
	ca := CA{
		Trusted:  authoritiesIn(secret.Data[keyTrusted]),
		Carried:  parseMark(secret.Annotations[annotationCADistributedAt]),
		Replaced: parseMark(secret.Annotations[annotationCARotatedAt]),
		Rotate:   rotate, Foreign: ofCertManager(secret),
	}
	ca.Current = readSigner(secret, KeyCertificate, keyPrivate, now)
	if ca.Current == nil {
		ca.Trusted = append(ca.Trusted, authoritiesIn(secret.Data[KeyCertificate])...)
		if key, err := privateKey(secret.Data[keyPrivate]); err == nil {
			ca.Orphan = key
		}
	}
	ca.Next = readSigner(secret, keyNextCertificate, keyNextPrivate, now)
	if ca.Next == nil {
		ca.Trusted = append(ca.Trusted, authoritiesIn(secret.Data[keyNextCertificate])...)
	}
	return ca
}

// readSigner returns nil unless the certificate is a valid CA certificate and the key matches it.
func readSigner(secret *corev1.Secret, certificate, key string, now time.Time) *Signer {
	c := firstCertificate(secret.Data[certificate])
	if c == nil || !c.IsCA || now.After(c.NotAfter) {
		return nil
	}
	private, err := privateKey(secret.Data[key])
	if err != nil || !belongs(private, c) {
		return nil
	}
	return &Signer{Certificate: c, Key: private}
}

func authoritiesIn(text []byte) []*x509.Certificate {
	return slices.DeleteFunc(certificatesIn(text), func(c *x509.Certificate) bool { return !c.IsCA })
}

// write writes the CA into its Secret, and keeps all other keys.
func (ca CA) write(secret *corev1.Secret, now time.Time) error {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	if !ca.Foreign {
		if err := ca.Current.write(secret, KeyCertificate, keyPrivate); err != nil {
			return err
		}
		if err := ca.Next.write(secret, keyNextCertificate, keyNextPrivate); err != nil {
			return err
		}
	}
	secret.Data[keyTrusted] = bundlePEM(ca.retired(now))
	if len(secret.Data[keyTrusted]) == 0 {
		delete(secret.Data, keyTrusted)
	}
	annotate(secret, annotationCADistributedAt, ca.Carried)
	annotate(secret, annotationCARotatedAt, ca.Replaced)
	if !ca.Rotate {
		delete(secret.Annotations, AnnotationRotate)
	}
	return nil
}

func (a *Signer) write(secret *corev1.Secret, certificate, key string) error {
	if a == nil {
		delete(secret.Data, certificate)
		delete(secret.Data, key)
		return nil
	}
	if have := firstCertificate(secret.Data[certificate]); have != nil && have.Equal(a.Certificate) {
		return nil
	}
	text, err := a.keyPEM()
	if err != nil {
		return err
	}
	secret.Data[certificate], secret.Data[key] = certificatePEM(a.Certificate), text
	return nil
}

func annotate(secret *corev1.Secret, annotation string, mark Mark) {
	if mark == (Mark{}) {
		delete(secret.Annotations, annotation)
		return
	}
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	secret.Annotations[annotation] = mark.String()
}
