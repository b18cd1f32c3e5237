package processruntime

import (
	"context"
	"crypto/tls"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/certificates"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// publish points the Service of the package to the process, so that the API server can call
// webhooks. The Service has no selector, since there are no pods, and an EndpointSlice with the
// address of this machine.
func (p *Runtime) publish(ctx context.Context, who plan.Requester, o manifests.Objects, ports assigned) error {
	if p.opts.Address == "" || o.Service == nil {
		return nil
	}
	o.Service = o.Service.DeepCopy()
	o.Service.Spec.Selector = nil
	for i := range o.Service.Spec.Ports {
		o.Service.Spec.Ports[i].TargetPort = intstr.FromInt32(o.Service.Spec.Ports[i].Port)
	}
	if err := p.objects.EnsureService(ctx, o); err != nil {
		return err
	}
	port := ports.serving
	if who.Package.Kind == v1.ProviderKind {
		port = p.webhookPort(ctx, runtime.ProcessName(who.Revision), o.Service, ports)
	}
	return p.writeEndpoints(ctx, who, o.Service, port)
}

// webhookPort returns the port on which a provider serves webhooks. A provider that reads no variable for it serves on
// the default port, unless the supervisor relocates its ports. Another process may listen there, so the default port
// counts only if the provider does not serve on the assigned one. The authority of the certificate is verified before
// webhooks are installed, and by the API server.
func (p *Runtime) webhookPort(ctx context.Context, process string, s *corev1.Service, ports assigned) int {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	switch {
	case serves(ctx, ports.serving, s):
		return ports.serving
	case ports.fixed != 0:
		return ports.fixed
	case !serves(ctx, p.defaultPort, s):
		return ports.serving
	}
	p.ports.fix(process, p.defaultPort)
	return p.defaultPort
}

// serves reports whether a server on a port has a certificate with the name of a Service. It completes the handshake,
// because servers log connections that are closed before.
func serves(ctx context.Context, port int, s *corev1.Service) bool {
	config := &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(state tls.ConnectionState) error { // See above.
		return state.PeerCertificates[0].VerifyHostname(certificates.ServerName(s.Name, s.Namespace))
	}}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", loopback(port))
	if err != nil {
		return false
	}
	_ = conn.Close() // There is no unwritten data.
	return true
}

// managedBy is the value of the label of the EndpointSlices that xpkg writes.
const managedBy = "xpkg.dev"

// writeEndpoints creates or updates the EndpointSlice of the Service. It fails with NameConflict if the EndpointSlice
// belongs to another owner.
func (p *Runtime) writeEndpoints(ctx context.Context, who plan.Requester, s *corev1.Service, port int) error {
	want := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: s.Name + "-process", OwnerReferences: s.OwnerReferences,
			Labels: map[string]string{discoveryv1.LabelServiceName: s.Name, discoveryv1.LabelManagedBy: managedBy},
		},
		AddressType: AddressType(p.opts.Address),
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{p.opts.Address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		}},
		Ports: []discoveryv1.EndpointPort{{
			Name: &s.Spec.Ports[0].Name, Port: new(int32(port)), Protocol: new(corev1.ProtocolTCP),
		}},
	}
	live := &discoveryv1.EndpointSlice{}
	err := p.opts.Client.Get(ctx, client.ObjectKeyFromObject(want), live)
	ours, holder := manifests.Claim(live, who)
	switch {
	case apierrors.IsNotFound(err):
		err = p.opts.Client.Create(ctx, want)
	case err == nil && !ours && (holder != nil || live.Labels[discoveryv1.LabelManagedBy] != managedBy):
		return deployment.ErrNameConflict.New(nil, "EndpointSlice %s/%s belongs to another owner", live.Namespace, live.Name)
	case err == nil && !sameEndpoints(live, want):
		want.ResourceVersion = live.ResourceVersion
		err = p.opts.Client.Update(ctx, want)
	}
	if err != nil {
		return fmt.Errorf("write the endpoints of the Service %s: %w", s.Name, err)
	}
	return nil
}

func sameEndpoints(a, b *discoveryv1.EndpointSlice) bool {
	return equality.Semantic.DeepEqual(a.Endpoints, b.Endpoints) && equality.Semantic.DeepEqual(a.Ports, b.Ports) &&
		equality.Semantic.DeepEqual(a.Labels, b.Labels) && manifests.EqualOwners(a.OwnerReferences, b.OwnerReferences)
}
