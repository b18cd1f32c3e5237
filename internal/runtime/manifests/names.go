package manifests

const (
	// Container is the name of the runtime container, the first container of the pod.
	Container = "package-runtime"

	// metricsPort is the name of the port for Prometheus metrics.
	metricsPort = "metrics"
	// WebhookPort is the name of a provider's webhook port.
	WebhookPort = "webhook"
	// GRPCPort is the name of a function's gRPC port.
	GRPCPort = "grpc"

	// MetricsNumber is the port of metrics of every container, and the default of controller-runtime.
	MetricsNumber = 8080
	// ServiceNumber is the port of every Service, and the default port on which a runtime
	// listens.
	ServiceNumber = 9443
)

const (
	serverVolume = "tls-server-certs"
	clientVolume = "tls-client-certs"

	// serverCertificates is the directory of the server certificate of a runtime: tls.crt,
	// tls.key and ca.crt.
	serverCertificates = "/tls/server"
	// clientCertificates is the directory of the client certificate of a runtime, with the same
	// files.
	clientCertificates = "/tls/client"

	// AuthorityKey is the key of the CA certificates in a Secret with a certificate.
	AuthorityKey = "ca.crt"

	serverVariable  = "TLS_SERVER_CERTS_DIR"
	clientVariable  = "TLS_CLIENT_CERTS_DIR"
	webhookVariable = "WEBHOOK_TLS_CERT_DIR"
)

// RestartAnnotation on the pods of a provider identifies the last deactivation of its kinds, after which they start
// again.
const RestartAnnotation = "xpkg.dev/deactivated"

// CertificatesAnnotation on the pods of a function identifies the certificates with which
// they started.
const CertificatesAnnotation = "xpkg.dev/certificates"

// Annotations by which Prometheus finds the metrics of a provider.
const (
	scrape     = "prometheus.io/scrape"
	scrapePort = "prometheus.io/port"
	scrapePath = "prometheus.io/path"
)

// user is the user ID and the group ID of a runtime, unless its configuration sets a
// security context.
const user = 2000
