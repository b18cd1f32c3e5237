// Package hook serves the webhooks of a provider to a real API server, and creates packages
// that declare them.
package hook

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/runtime/processruntime"
)

// Program is the program of a package. It serves with the current certificate in the Secret of the
// package.
type Program struct {
	server *httptest.Server
	// Admitted, Mutated and Converted count the calls of the API server.
	Admitted, Mutated, Converted atomic.Int64
	// Denies makes the validating webhook reject all requests.
	Denies atomic.Bool
}

// Start starts the program of a package, which runs until the test ends, and creates a Service for
// it.
func Start(t testing.TB, c client.Client, namespace, pkg string) *Program {
	t.Helper()
	l := Listen(t)
	p := Serve(t, c, namespace, pkg, l)
	Expose(t, c, namespace, pkg, l.Addr().(*net.TCPAddr))
	return p
}

// Listen listens on an address that endpoints may have. An API server calls endpoints directly, and
// endpoints may not have loopback addresses. If the machine has no other address, Listen calls
// [prerequisite.Missing].
func Listen(t testing.TB) net.Listener {
	t.Helper()
	address := processruntime.MachineAddress()
	if address == "" {
		prerequisite.Missing(t, "this machine has no address other than loopback, which endpoints need")
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// Serve starts the program of a package on a listener. It runs until the test ends or Close is
// called.
func Serve(t testing.TB, c client.Client, namespace, pkg string, l net.Listener) *Program {
	t.Helper()
	p := &Program{}
	mux := http.NewServeMux()
	mux.HandleFunc("/validate", p.validate)
	mux.HandleFunc("/mutate", p.mutate)
	mux.HandleFunc("/convert", p.convert)
	p.server = &httptest.Server{Listener: l, Config: &http.Server{Handler: mux, ErrorLog: log.New(io.Discard, "", 0)}}
	// Without keep-alives, each call makes a new connection, for which the certificate is read
	// again.
	p.server.Config.SetKeepAlivesEnabled(false)
	p.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (
		*tls.Certificate, error,
	) {
		secret := &corev1.Secret{}
		if err := c.Get(
			t.Context(), client.ObjectKey{Namespace: namespace, Name: v1.TLSServerSecretName(pkg)}, secret,
		); err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
		return &pair, err
	}}
	p.server.StartTLS()
	t.Cleanup(p.server.Close)
	return p
}

// Close stops the program and closes its port.
func (p *Program) Close() { p.server.Close() }

// port is the name of the port of the Service.
const port = "webhook"

// Expose creates the Service of a package, without a selector, and routes it to an address until
// the test ends.
func Expose(t testing.TB, c client.Client, namespace, pkg string, to *net.TCPAddr) {
	t.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pkg},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: port, Port: 9443}}},
	}
	createUntilCleanup(t, c, service)
	Route(t, c, namespace, pkg, to)
}

// Route routes an existing Service of a package to an address until the test ends.
func Route(t testing.TB, c client.Client, namespace, pkg string, to *net.TCPAddr) {
	t.Helper()
	kind := "IPv4"
	if to.IP.To4() == nil {
		kind = "IPv6"
	}
	// The scheme of the client may lack the type.
	slice := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": kind,
		"metadata": map[string]any{"namespace": namespace, "name": pkg, "labels": map[string]any{
			"kubernetes.io/service-name": pkg,
		}},
		"endpoints": []any{map[string]any{"addresses": []any{to.IP.String()}, "conditions": map[string]any{"ready": true}}},
		"ports":     []any{map[string]any{"name": port, "port": int64(to.Port), "protocol": "TCP"}},
	}}
	createUntilCleanup(t, c, slice)
}

func createUntilCleanup(t testing.TB, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

// validate rejects objects whose names begin with "bad", or all objects.
func (p *Program) validate(w http.ResponseWriter, r *http.Request) {
	p.Admitted.Add(1)
	review(w, r, func(q *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Allowed: !p.Denies.Load() && !strings.HasPrefix(q.Name, "bad")}
	})
}

// mutate adds a label to all objects.
func (p *Program) mutate(w http.ResponseWriter, r *http.Request) {
	p.Mutated.Add(1)
	review(w, r, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		patch, kind := []byte(`[{"op":"add","path":"/metadata/labels","value":{"mutated":"yes"}}]`),
			admissionv1.PatchTypeJSONPatch
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: patch, PatchType: &kind}
	})
}

func review(
	w http.ResponseWriter, r *http.Request, decide func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse,
) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = decide(review.Request)
	review.Response.UID, review.Request = review.Request.UID, nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// convert changes nothing but the version.
func (p *Program) convert(w http.ResponseWriter, r *http.Request) {
	p.Converted.Add(1)
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{
		Status: metav1.StatusSuccess,
	}}
	for _, o := range review.Request.Objects {
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON(o.Raw); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		u.SetAPIVersion(review.Request.DesiredAPIVersion)
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: &u})
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// Called reports whether each of the webhooks was called.
func (p *Program) Called() bool {
	return p.Admitted.Load() > 0 && p.Mutated.Load() > 0 && p.Converted.Load() > 0
}
