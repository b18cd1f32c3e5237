package certificates

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// crossplane makes Secrets as Crossplane does: one subject for everything, one
// serial number, RSA keys, ten years, no names of the cluster's domain.
type crossplane struct {
	key  *rsa.PrivateKey
	cert *x509.Certificate
}

var crossplaneName = pkix.Name{
	CommonName: "Crossplane", Organization: []string{"Crossplane"}, Country: []string{"Earth"},
	Province: []string{"Earth"}, Locality: []string{"Earth"},
}

// rsaKeys are made once for the whole test: they are slow to make.
var rsaKeys = sync.OnceValue(func() []*rsa.PrivateKey {
	keys := make([]*rsa.PrivateKey, 3)
	for i := range keys {
		key, err := rsa.GenerateKey(rand.Reader, rsaBits)
		if err != nil {
			panic(err)
		}
		keys[i] = key
	}
	return keys
})

func newCrossplane(t testing.TB, n int) crossplane {
	t.Helper()
	key := rsaKeys()[n]
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2022), Subject: crossplaneName, Issuer: crossplaneName, DNSNames: []string{RootSecret},
		NotBefore: start.Add(-day), NotAfter: start.AddDate(10, 0, -1), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCRLSign | x509.KeyUsageCertSign,
	}
	return crossplane{key, mustSign(t, template, template, key, key)}
}

func mustSign(t testing.TB, template, parent *x509.Certificate, key, signer *rsa.PrivateKey) *x509.Certificate {
	t.Helper()
	c, err := sign(template, parent, key.Public(), signer, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func rsaPEM(key *rsa.PrivateKey) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}

func (x crossplane) root() *corev1.Secret {
	return secretOf(RootSecret, map[string][]byte{KeyCertificate: certificatePEM(x.cert), keyPrivate: rsaPEM(x.key)})
}

func (x crossplane) leaf(t testing.TB, w Requirement) *corev1.Secret {
	t.Helper()
	return x.leafUntil(t, w, start.AddDate(10, 0, -1))
}

func (x crossplane) leafUntil(t testing.TB, w Requirement, end time.Time) *corev1.Secret {
	t.Helper()
	names := w.DNSNames
	if w.Usage == Server {
		names = names[:3]
	}
	key := rsaKeys()[2]
	c := mustSign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2022), Subject: crossplaneName, DNSNames: names, NotBefore: start.Add(-day), NotAfter: end,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageDataEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{w.Usage.extended()}, BasicConstraintsValid: true,
	}, x.cert, key, x.key)
	return secretOf(w.Secret, map[string][]byte{
		KeyCertificate: certificatePEM(c), keyPrivate: rsaPEM(key), KeyBundle: certificatePEM(x.cert),
	})
}

// ourSecrets are made once: making an authority is slow.
var ourSecrets = sync.OnceValue(func() []client.Object {
	w := newSimulation(&testing.B{})
	if _, _, err := w.store().Ensure(context.Background(), wanted); err != nil {
		panic(err)
	}
	var list corev1.SecretList
	if err := w.client.List(context.Background(), &list); err != nil {
		panic(err)
	}
	var out []client.Object
	for i := range list.Items {
		list.Items[i].ResourceVersion = ""
		out = append(out, &list.Items[i])
	}
	return out
})

// ourWorld returns a cluster in which all certificates are there.
func ourWorld(t testing.TB) *simulation {
	t.Helper()
	var secrets []client.Object
	for _, s := range ourSecrets() {
		secrets = append(secrets, s.DeepCopyObject().(client.Object))
	}
	return newSimulation(t, secrets...)
}
