package certificates

// RootSecret is the Secret of the authority.
const RootSecret = "crossplane-root-ca"

// Keys in the Secrets of servers and clients. The authority's Secret has the first
// two for what it signs with now.
const (
	KeyCertificate = "tls.crt"
	KeyPrivate     = "tls.key"
	KeyBundle      = "ca.crt"
)

// Keys that only the authority's Secret has.
const (
	// keyNextCertificate and keyNextPrivate are what it will sign with.
	keyNextCertificate = "next.crt"
	keyNextPrivate     = "next.key"
	// keyTrusted are certificates that are trusted beside those.
	keyTrusted = "trusted.crt"
)

// AnnotationRotate on the authority's Secret, with whatever value, asks for a new
// authority now. It is removed when that has begun.
const AnnotationRotate = "xpkg.dev/rotate"

const (
	// labelCertificate on a Secret says that its certificate is of this package, and
	// whether it is a server's or a client's.
	labelCertificate = "xpkg.dev/certificate"
	// annotationCADistributedAt records the bundle that every Secret has, and since when;
	// annotationCARotatedAt records the CA that signed every certificate, and since when.
	annotationCADistributedAt = "xpkg.dev/ca-distributed-at"
	annotationCARotatedAt     = "xpkg.dev/ca-rotated-at"
	// annotationsOfCertManager begin so.
	annotationsOfCertManager = "cert-manager.io/"
)

// clusterDomain is the usual domain of a cluster. Crossplane does not use it, so a
// certificate that lacks names of it is not replaced for that.
const clusterDomain = ".cluster.local"

// ServerNames are the names by which a Service is called.
func ServerNames(service, namespace string) []string {
	inCluster := service + "." + namespace + ".svc"
	return []string{service, service + "." + namespace, inCluster, inCluster + clusterDomain}
}
