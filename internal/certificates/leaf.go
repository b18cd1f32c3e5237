package certificates

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
)

// Leaf is the content of the Secret of a server or a client.
type Leaf struct {
	Secret string
	// Required is the requested certificate; nil for an existing certificate that is not requested now.
	Required *Requirement
	// Certificate is nil if it cannot be used now; Fault is the reason.
	Certificate *x509.Certificate
	Fault       string
	// Issuer signed the certificate.
	Issuer *x509.Certificate
	// Bundle contains the CA certificates in the Secret.
	Bundle []*x509.Certificate
	// Unnamed are the required names that the certificate does not have.
	Unnamed []string
	// Foreign reports whether another program issues the certificate. It is then used unchanged.
	Foreign bool
	// Taken reports whether the Secret has other content or belongs to another owner, which Holder names.
	Taken  bool
	Holder string
	// Unowned reports whether the Secret lacks a required owner.
	Unowned bool
}

// coreSecrets are the Secrets of Crossplane core, which have no owners and the names of those of a package
// "crossplane". With the client certificate, core calls Functions.
var coreSecrets = []string{v1.TLSServerSecretName("crossplane"), v1.TLSClientSecretName("crossplane")}

// readLeaf reads a Secret; nil if it does not exist.
func readLeaf(name string, secret *corev1.Secret, want *Requirement, ca CA, now time.Time) Leaf {
	leaf := Leaf{Secret: name, Required: want, Fault: "the Secret does not exist"}
	isOfPackage := want != nil && want.Owner.Package.Name != ""
	if isOfPackage && slices.Contains(coreSecrets, name) {
		leaf.Taken, leaf.Holder = true, "Crossplane core"
		return leaf
	}
	if secret == nil {
		return leaf
	}
	ours := secret.Labels[labelCertificate] != ""
	leaf.Bundle = authoritiesIn(secret.Data[KeyBundle])
	leaf.Certificate, leaf.Issuer, leaf.Fault = usable(secret, want, ca, now)
	leaf.Taken = !ours && len(secret.Data) > 0 && !hasAny(secret, KeyCertificate, keyPrivate, KeyBundle)
	leaf.Foreign = ofCertManager(secret) || leaf.Certificate != nil && !ours && !akin(leaf.Issuer, ca, now)
	if isOfPackage {
		if _, holder := manifests.Claim(secret, want.Owner); holder != nil &&
			(!leaf.Foreign || manifests.IsPackage(*holder)) {
			leaf.Taken, leaf.Holder = true, holder.Kind+"/"+holder.Name
		}
	}
	leaf.Unowned = want != nil && !leaf.Foreign &&
		!manifests.EqualOwners(want.owners(secret.OwnerReferences), secret.OwnerReferences)
	if want != nil && leaf.Certificate != nil {
		leaf.Unnamed = unnamed(leaf.Certificate, want.DNSNames, ours)
	}
	return leaf
}

func hasAny(secret *corev1.Secret, keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return len(secret.Data[k]) > 0 })
}

// ofCertManager reports whether cert-manager fills a Secret.
func ofCertManager(secret *corev1.Secret) bool {
	for annotation := range secret.Annotations {
		if strings.HasPrefix(annotation, annotationsOfCertManager) {
			return true
		}
	}
	return false
}

// akin reports whether a CA was created by xpkg or by Crossplane: such a CA issued certificates in use before
// the CA Secret was replaced.
func akin(issuer *x509.Certificate, ca CA, now time.Time) bool {
	return slices.ContainsFunc(ca.Bundle(now), issuer.Equal) || slices.Contains(issuer.Subject.Organization, organization)
}

// usable returns the certificate and its issuer, or the reason why the certificate cannot be used now.
func usable(
	secret *corev1.Secret, want *Requirement, ca CA, now time.Time,
) (c, issuer *x509.Certificate, fault string) {
	c = firstCertificate(secret.Data[KeyCertificate])
	if c == nil {
		return nil, nil, "the Secret contains no certificate"
	}
	key, err := privateKey(secret.Data[keyPrivate])
	if err != nil {
		return nil, nil, "the private key cannot be read: " + err.Error()
	}
	if !belongs(key, c) {
		return nil, nil, "the private key belongs to another certificate"
	}
	usage := usageOf(c)
	if want != nil {
		usage = want.Usage
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, a := range append(ca.Bundle(now), authoritiesIn(secret.Data[KeyBundle])...) {
		roots.AddCert(a)
	}
	for _, a := range certificatesIn(secret.Data[KeyCertificate])[1:] {
		between.AddCert(a)
	}
	chains, err := c.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage.extended()},
	})
	if err != nil {
		return nil, nil, fmt.Sprintf("it is not valid now: %v", err)
	}
	return c, issuerOf(chains, ca), ""
}

// issuerOf returns the CA at the end of a chain. If several CAs have the same key, it prefers the current one.
func issuerOf(chains [][]*x509.Certificate, ca CA) *x509.Certificate {
	for _, chain := range chains {
		if last := chain[len(chain)-1]; ca.Current != nil && last.Equal(ca.Current.Certificate) {
			return last
		}
	}
	return chains[0][len(chains[0])-1]
}

// unnamed returns the required names that a certificate does not have. Certificates of Crossplane have no names of the
// usual domain.
func unnamed(c *x509.Certificate, names []string, ours bool) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.Contains(c.DNSNames, name) || !ours && strings.HasSuffix(name, clusterDomain)
	})
}
