package manager_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"hash/fnv"
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

	"github.com/xpkg-dev/xpkg/internal/manager"
)

// webhookProgram plays the program of a provider whose webhooks are called: it serves
// with the certificate that its Secret has at the moment, at the Service of the package.
type webhookProgram struct {
	server *httptest.Server
	// admitted, mutated and converted count the calls of the API server.
	admitted, mutated, converted atomic.Int64
}

// playProgram starts the program, and makes the Service that leads to it. Nobody makes
// addresses of Services work here, so that it is a name for an address of this machine
// that no other test uses.
func playProgram(t *testing.T, s *stand, pkg string) *webhookProgram {
	t.Helper()
	h := fnv.New32()
	fmt.Fprint(h, t.Name(), pkg)
	sum := h.Sum(nil)
	address := fmt.Sprintf("127.%d.%d.%d", sum[0]%200+16, sum[1], sum[2]%250+2)
	p := &webhookProgram{}
	mux := http.NewServeMux()
	mux.HandleFunc("/validate", p.validate)
	mux.HandleFunc("/mutate", p.mutate)
	mux.HandleFunc("/convert", p.convert)
	p.server = httptest.NewUnstartedServer(mux)
	var err error
	if p.server.Listener, err = net.Listen("tcp", net.JoinHostPort(address, "9443")); err != nil {
		t.Fatal(err)
	}
	// Each call makes a new connection, and so looks at the certificate anew.
	p.server.Config.SetKeepAlivesEnabled(false)
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		secret := &corev1.Secret{}
		if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: manager.DefaultNamespace, Name: pkg + "-tls-server"}, secret); err != nil {
			return nil, err
		}
		c, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
		return &c, err
	}}
	p.server.StartTLS()
	t.Cleanup(p.server.Close)
	create(t, s.client, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: manager.DefaultNamespace, Name: pkg},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: address},
	})
	return p
}

// validate refuses what is called bad.
func (p *webhookProgram) validate(w http.ResponseWriter, r *http.Request) {
	p.admitted.Add(1)
	review(w, r, func(q *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Allowed: !strings.HasPrefix(q.Name, "bad")}
	})
}

// mutate puts a label on everything.
func (p *webhookProgram) mutate(w http.ResponseWriter, r *http.Request) {
	p.mutated.Add(1)
	review(w, r, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		patch, kind := []byte(`[{"op":"add","path":"/metadata/labels","value":{"mutated":"yes"}}]`), admissionv1.PatchTypeJSONPatch
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: patch, PatchType: &kind}
	})
}

func review(w http.ResponseWriter, r *http.Request, decide func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) {
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
func (p *webhookProgram) convert(w http.ResponseWriter, r *http.Request) {
	p.converted.Add(1)
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
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

// hooked is a provider whose definition is converted and whose objects are checked and
// changed by its program.
func hooked(name, group string) string {
	converted := strings.Replace(crd(group, "Thing", "one"), "spec:\n", `spec:
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
`, 1)
	converted += "  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n"
	configuration := func(kind, path string) string {
		return fmt.Sprintf(`---
apiVersion: admissionregistration.k8s.io/v1
kind: %sWebhookConfiguration
metadata: {name: any}
webhooks:
- name: any.%s
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 10
  clientConfig: {service: {name: any, namespace: any, path: %s}}
  rules:
  - {apiGroups: [%s], apiVersions: ["*"], resources: [things], operations: [CREATE]}
`, kind, group, path, group)
	}
	return provider(name, converted, configuration("Validating", "/validate"), configuration("Mutating", "/mutate"))
}

// thing is an object of the kind that a hooked provider brings.
func thing(group, version, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(group + "/" + version)
	u.SetKind("Thing")
	u.SetName(name)
	return u
}
