// Package webhooks prevents webhooks of packages from blocking a cluster: it verifies that an endpoint serves before a
// configuration makes the API server call it, and deletes configurations whose endpoint stops serving.
package webhooks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/certificates"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

var (
	// ErrNotServing is the code for an endpoint that the API server cannot call.
	ErrNotServing = errcode.Code{
		Name: "WebhookNotServing", Class: errcode.Unavailable,
		Cause: "The runtime of the package does not serve webhooks: the Service has no ready endpoint, nothing listens on its port, or the certificate is not the one that the API server trusts.",
		Fix:   "No action needed once the runtime serves: the webhook configurations are installed then. Otherwise read the logs of the runtime; a NetworkPolicy must let the manager connect to it.",
	}
	// ErrOutOfReach is the code for an endpoint in a network that this process cannot reach. The
	// API server may be able to call it.
	ErrOutOfReach = errcode.Code{
		Name: "WebhookOutOfReach", Class: errcode.Unavailable,
		Cause: "The manager runs outside of the cluster and cannot connect to the endpoints of a webhook, so it cannot prove that they serve.",
		Fix:   "Run the manager in the cluster with `xpkg bootstrap`, or add a route to the network of the pods.",
	}
)

const (
	// probeTimeout limits a connection with its TLS handshake.
	probeTimeout = 2 * time.Second
	// probeLimit is the maximum number of endpoints to which one probe connects.
	probeLimit = 8
)

// Endpoint is a port of a Service, as a webhook configuration names it.
type Endpoint struct {
	Namespace, Name string
	Port            int32
	// CABundle contains the CA certificates that the API server trusts, in PEM.
	CABundle string
}

// serverName returns the name that the API server verifies the certificate against.
func (e Endpoint) serverName() string { return certificates.ServerName(e.Name, e.Namespace) }

// Prober connects to endpoints as the API server does.
type Prober struct {
	// Reader reads Services and EndpointSlices. It must not answer from a cache.
	Reader client.Reader
	// Remote reports that this process is not in the network of the endpoints. If it is set, the
	// error for endpoints that do not respond is ErrOutOfReach, and otherwise ErrNotServing.
	Remote bool
}

// Check performs a TLS handshake with the ready endpoints of a Service until one of them succeeds.
// It returns ErrNotServing if none succeeds, and another error, such as ErrOutOfReach, if the state
// of the endpoints is unknown.
func (p Prober) Check(ctx context.Context, e Endpoint) error {
	addresses, err := p.addresses(ctx, e)
	if err != nil {
		return err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: e.serverName(), NextProtos: []string{"http/1.1"}}
	if e.CABundle != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(e.CABundle)) {
			return ErrNotServing.New(nil, "the CA bundle for %s has no certificate", e.serverName())
		}
	}
	var failures []error
	for _, address := range addresses {
		err := handshake(ctx, address, config)
		if err == nil {
			return nil
		}
		failures = append(failures, err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	code := ErrNotServing
	if p.Remote && !slices.ContainsFunc(failures, func(err error) bool { return !noRoute(err) }) {
		code = ErrOutOfReach
	}
	return code.New(failures[0], "%s port %d does not serve webhooks", e.serverName(), e.Port)
}

// handshake connects to an address and verifies its certificate.
func handshake(ctx context.Context, address string, config *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	_ = conn.Close() // There is no unwritten data.
	return nil
}

// noRoute reports whether the endpoint of a connection could not be reached, rather than refusing
// it.
func noRoute(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial" &&
		(network.Timeout() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, syscall.EHOSTUNREACH) ||
			errors.Is(err, syscall.ENETUNREACH))
}

// addresses returns the addresses of up to probeLimit ready endpoints. It fails with ErrNotServing
// if there are none.
func (p Prober) addresses(ctx context.Context, e Endpoint) ([]string, error) {
	var service corev1.Service
	err := p.Reader.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: e.Name}, &service)
	if apierrors.IsNotFound(err) {
		return nil, ErrNotServing.New(nil, "there is no Service %s/%s", e.Namespace, e.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the Service %s/%s: %w", e.Namespace, e.Name, err)
	}
	i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == e.Port })
	if i < 0 {
		return nil, ErrNotServing.New(nil, "the Service %s/%s has no port %d", e.Namespace, e.Name, e.Port)
	}
	var list discoveryv1.EndpointSliceList
	if err := p.Reader.List(ctx, &list, client.InNamespace(e.Namespace), client.MatchingLabels{
		discoveryv1.LabelServiceName: e.Name,
	}); err != nil {
		return nil, fmt.Errorf("list the EndpointSlices of the Service %s/%s: %w", e.Namespace, e.Name, err)
	}
	var out []string
	for _, slice := range list.Items {
		out = append(out, readyAddresses(slice, service.Spec.Ports[i].Name)...)
	}
	if len(out) == 0 {
		return nil, ErrNotServing.New(nil, "the Service %s/%s has no ready endpoint", e.Namespace, e.Name)
	}
	return out[:min(len(out), probeLimit)], nil
}

// readyAddresses returns the host:port of each ready endpoint of a slice, for a port of
// the Service by its name.
func readyAddresses(slice discoveryv1.EndpointSlice, port string) []string {
	var out []string
	for _, p := range slice.Ports {
		if p.Port == nil || p.Name == nil && port != "" || p.Name != nil && *p.Name != port {
			continue
		}
		for _, e := range slice.Endpoints {
			if len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				out = append(out, net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*p.Port))))
			}
		}
	}
	return out
}
