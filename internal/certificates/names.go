package certificates

import v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"

// RootSecret is the CA Secret.
const RootSecret = v1.RootCASecretName

// Keys in the Secrets of servers and clients. In the CA Secret, the first two are the signing certificate and its
// key.
const (
	KeyCertificate = "tls.crt"
	keyPrivate     = "tls.key"
	KeyBundle      = "ca.crt"
)

// Keys of the CA Secret only.
const (
	// keyNextCertificate and keyNextPrivate are the next signing certificate and its key.
	keyNextCertificate = "next.crt"
	keyNextPrivate     = "next.key"
	// keyTrusted are further trusted certificates.
	keyTrusted = "trusted.crt"
)

// AnnotationRotate on the CA Secret, with any value, requests a rotation of the CA. It is removed when the
// rotation has started.
const AnnotationRotate = "xpkg.dev/rotate"

const (
	// labelCertificate marks a Secret with the certificate of a package; its value is the usage, server or client.
	labelCertificate = "xpkg.dev/certificate"
	// annotationCADistributedAt records the bundle that every Secret has, and since when;
	// annotationCARotatedAt records the CA that signed every certificate, and since when.
	annotationCADistributedAt = "xpkg.dev/ca-distributed-at"
	annotationCARotatedAt     = "xpkg.dev/ca-rotated-at"
	// annotationsOfCertManager is the prefix of the annotations of cert-manager.
	annotationsOfCertManager = "cert-manager.io/"
)

// clusterDomain is the usual domain of a cluster. Crossplane does not use it, so a certificate without its names is not
// replaced.
const clusterDomain = ".cluster.local"

// ServerName returns the DNS name by which clients verify the certificate of a Service.
func ServerName(service, namespace string) string { return service + "." + namespace + ".svc" }

// ServerNames returns the DNS names of a Service.
func ServerNames(service, namespace string) []string {
	inCluster := ServerName(service, namespace)
	return []string{service, service + "." + namespace, inCluster, inCluster + clusterDomain}
}
