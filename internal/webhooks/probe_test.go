package webhooks

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const serverName = "program.system.svc"

func TestCheck(t *testing.T) {
	right, bundle := certificate(t, serverName)
	misnamed, misnamedBundle := certificate(t, "other.system.svc")
	_, otherBundle := certificate(t, serverName)
	serving := serve(t, func(c net.Conn) { handshakeAs(c, right) })
	misnamedServer := serve(t, func(c net.Conn) { handshakeAs(c, misnamed) })
	plain := serve(t, func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })
	closed := closedPort(t)

	tests := map[string]struct {
		slices  []client.Object
		noPort  bool
		bundle  []byte
		want    error
		missing bool
	}{
		"serves":            {slices: endpoints(serving, true), bundle: bundle},
		"one of two serves": {slices: endpoints(closed, true, serving, true), bundle: bundle},
		"nothing listens":   {slices: endpoints(closed, true), bundle: bundle, want: ErrNotServing},
		"another name": {
			slices: endpoints(misnamedServer, true), bundle: misnamedBundle, want: ErrNotServing,
		},
		"another authority":                   {slices: endpoints(serving, true), bundle: otherBundle, want: ErrNotServing},
		"no TLS":                              {slices: endpoints(plain, true), bundle: bundle, want: ErrNotServing},
		"the endpoint that serves is unready": {slices: endpoints(serving, false), bundle: bundle, want: ErrNotServing},
		"no endpoint":                         {bundle: bundle, want: ErrNotServing},
		"no Service": {
			slices: endpoints(serving, true), bundle: bundle, missing: true, want: ErrNotServing,
		},
		"the Service has another port": {
			slices: endpoints(serving, true), bundle: bundle, noPort: true, want: ErrNotServing,
		},
		"a CA bundle without a certificate": {
			slices: endpoints(serving, true), bundle: []byte("nothing"), want: ErrNotServing,
		},
		"authorities of the system": {slices: endpoints(serving, true), want: ErrNotServing},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			service := &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "program"},
				Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "metrics", Port: 8080}, {
					Name: "webhook", Port: 9443,
				}}},
			}
			if tc.noPort {
				service.Spec.Ports = service.Spec.Ports[:1]
			}
			objects := tc.slices
			if !tc.missing {
				objects = append(objects, service)
			}
			p := Prober{Reader: reader(t, objects...)}
			err := p.Check(t.Context(), Endpoint{Namespace: "system", Name: "program", Port: 9443, CABundle: string(tc.bundle)})
			if tc.want == nil && err != nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

// A probe that is stopped proves nothing about the endpoint.
func TestCheckThatIsStoppedIsNoFailureOfTheEndpoint(t *testing.T) {
	silent := serve(t, func(net.Conn) { <-t.Context().Done() })
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "program"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "webhook", Port: 9443}}},
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := Prober{Reader: reader(t, append(endpoints(silent, true), service)...)}
	if err := p.Check(ctx, Endpoint{Namespace: "system", Name: "program", Port: 9443}); errors.Is(err, ErrNotServing) {
		t.Error(err)
	}
}

func TestNoRoute(t *testing.T) {
	timeout := &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
	if !noRoute(timeout) {
		t.Error("an address that does not reply has a route")
	}
	if noRoute(&net.OpError{Op: "read", Err: context.DeadlineExceeded}) || noRoute(errors.New("x509")) {
		t.Error("a server that replies has no route")
	}
}

func reader(t *testing.T, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// endpoints returns an EndpointSlice for pairs of an address and whether it is ready. The
// slice also has a port that the webhooks do not use.
func endpoints(pairs ...any) []client.Object {
	var out []client.Object
	for i := 0; i < len(pairs); i += 2 {
		address, ready := pairs[i].(*net.TCPAddr), pairs[i+1].(bool)
		out = append(out, &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "system", Name: fmt.Sprint("slice-", address.Port),
				Labels: map[string]string{discoveryv1.LabelServiceName: "program"},
			},
			Endpoints: []discoveryv1.Endpoint{{
				Addresses: []string{address.IP.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			}},
			Ports: []discoveryv1.EndpointPort{
				{Name: new("metrics"), Port: new(int32(1))}, {Name: new("webhook"), Port: new(int32(address.Port))},
			},
		})
	}
	return out
}

func serve(t *testing.T, handle func(net.Conn)) *net.TCPAddr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				handle(conn)
				_ = conn.Close()
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr)
}

func handshakeAs(c net.Conn, certificate tls.Certificate) {
	_ = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}).
		HandshakeContext(context.Background())
}

func closedPort(t *testing.T) *net.TCPAddr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr)
}

// certificate returns a self-signed certificate for a name, and the CA bundle that trusts it.
func certificate(t *testing.T, name string) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}
