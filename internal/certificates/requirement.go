package certificates

import (
	"crypto/x509"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Usage is the usage of a certificate.
type Usage string

// Usages of certificates.
const (
	Server Usage = "server"
	Client Usage = "client"
)

func (u Usage) extended() x509.ExtKeyUsage {
	if u == Client {
		return x509.ExtKeyUsageClientAuth
	}
	return x509.ExtKeyUsageServerAuth
}

// usageOf returns the usages of a certificate.
func usageOf(c *x509.Certificate) Usage {
	for _, u := range c.ExtKeyUsage {
		if u == x509.ExtKeyUsageServerAuth || u == x509.ExtKeyUsageAny {
			return Server
		}
	}
	return Client
}

// Requirement is a certificate that a runtime needs.
type Requirement struct {
	// Secret is the name of its Secret; see [v1.TLSServerSecretName] and [v1.TLSClientSecretName].
	Secret string
	Usage  Usage
	// DNSNames are the names in the certificate; see [ServerNames]. The certificate of a client has the name of its
	// revision.
	DNSNames []string
	// Owner is the active revision whose runtime needs the certificate, and its package, which become the owners of the
	// Secret. Without it, the Secret has no owners.
	Owner plan.Requester
}

// owners returns the owners of a Secret with some owners.
func (r Requirement) owners(live []metav1.OwnerReference) []metav1.OwnerReference {
	if r.Owner.Package.Name == "" {
		return live
	}
	return manifests.Hold(live, r.Owner, []metav1.OwnerReference{
		r.Owner.Revision.Reference(true), r.Owner.Package.Reference(false),
	})
}

// Issued is a certificate that is in place, each part in PEM.
type Issued struct {
	Cert, Key []byte
	// Bundle contains the CA certificates that the user of the certificate trusts, and with which other clients verify
	// the certificate.
	Bundle []byte
}
