package shape

const (
	// Container is the name of the container that the program runs in. It is the
	// first one of the pod.
	Container = "package-runtime"

	// MetricsPort is the name of the port of Prometheus metrics, WebhookPort that
	// of a provider's webhooks, and GRPCPort that of a function.
	MetricsPort = "metrics"
	WebhookPort = "webhook"
	GRPCPort    = "grpc"

	metricsNumber = 8080
	// ServiceNumber is the port of every Service, and the one that programs
	// listen on unless they are told another.
	ServiceNumber = 9443
)

const (
	serverVolume = "tls-server-certs"
	clientVolume = "tls-client-certs"

	// ServerCertificates and ClientCertificates are the folders in which a program
	// finds its certificates: tls.crt, tls.key and ca.crt.
	ServerCertificates = "/tls/server"
	ClientCertificates = "/tls/client"

	// AuthorityKey is the key of the authorities in a Secret with a certificate.
	AuthorityKey = "ca.crt"

	serverVariable  = "TLS_SERVER_CERTS_DIR"
	clientVariable  = "TLS_CLIENT_CERTS_DIR"
	webhookVariable = "WEBHOOK_TLS_CERT_DIR"
)

// CertificatesAnnotation on the pods of a function stands for the certificates that they
// started with.
const CertificatesAnnotation = "xpkg.dev/certificates"

// scrape and the other annotations let Prometheus find the metrics of a provider.
const (
	scrape     = "prometheus.io/scrape"
	scrapePort = "prometheus.io/port"
	scrapePath = "prometheus.io/path"
)

// user is the user and the group that programs run as, unless their configuration
// says something else about security.
const user = 2000
