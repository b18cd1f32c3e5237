package certificates

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

const patience = time.Minute

func newAPI(t *testing.T, namespace string) client.Client {
	t.Helper()
	c, err := client.New(cluster.Start(t), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	return c
}

// Several managers start on an empty namespace of a real API server.
func TestManagersStartAtOnceOnTheAPIServer(t *testing.T) {
	const namespace = "certificates-at-once"
	api := newAPI(t, namespace)
	results := make([]map[string]Issued, 4)
	var group sync.WaitGroup
	for i := range results {
		group.Go(func() {
			s := &Store{Client: api, Namespace: namespace, Now: time.Now, Random: rand.Reader}
			var err error
			if results[i], _, err = s.Ensure(t.Context(), wanted); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, server := range []Requirement{wanted[0], wanted[2]} {
		for i, from := range results {
			for _, to := range results {
				a, b := from[server.Secret], to[wanted[3].Secret]
				err := connect(
					map[string][]byte{KeyCertificate: a.Cert, keyPrivate: a.Key, KeyBundle: a.Bundle},
					map[string][]byte{KeyCertificate: b.Cert, keyPrivate: b.Key, KeyBundle: b.Bundle}, time.Now(),
				)
				if err != nil {
					t.Errorf("manager %d: %v", i, err)
				}
			}
		}
	}
}

// Without the namespace there are no certificates, and the error names it.
func TestWithoutANamespace(t *testing.T) {
	api, err := client.New(cluster.Start(t), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{Client: api, Namespace: "certificates-nowhere", Now: time.Now, Random: rand.Reader}
	if _, _, err := s.Issue(t.Context(), wanted[:1]); err == nil ||
		!strings.Contains(err.Error(), `namespaces "certificates-nowhere" not found`) {
		t.Errorf("got %v", err)
	}
}

// hook is the program of a package that answers webhooks, with the certificate that
// its Secret has at the moment.
type hook struct {
	api       client.Client
	namespace string
	server    *httptest.Server
	// marker is the last path at which the API server called.
	marker atomic.Value
	calls  atomic.Int64
	probes int
}

func newHook(t *testing.T, api client.Client, namespace string) *hook {
	t.Helper()
	h := &hook{api: api, namespace: namespace}
	h.marker.Store("")
	h.server = httptest.NewUnstartedServer(http.HandlerFunc(h.answer))
	// Each call makes a new connection, and so looks at the certificate anew.
	h.server.Config.SetKeepAlivesEnabled(false)
	h.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (
		*tls.Config, error,
	) {
		s := &corev1.Secret{}
		if err := api.Get(
			context.WithoutCancel(t.Context()), client.ObjectKey{Namespace: namespace, Name: wanted[0].Secret}, s,
		); err != nil {
			return nil, err
		}
		c, err := tls.X509KeyPair(s.Data[KeyCertificate], s.Data[keyPrivate])
		return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{c}}, err
	}}
	h.server.StartTLS()
	t.Cleanup(h.server.Close)
	return h
}

func (h *hook) answer(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/probe") {
		h.marker.Store(r.URL.Path)
	} else {
		h.calls.Add(1)
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// configure sets the address and the CA bundle of the webhook in the API server.
func (h *hook) configure(
	ctx context.Context, name, path string, operation admissionregistrationv1.OperationType, bundle []byte,
) error {
	url := fmt.Sprintf("https://localhost:%d%s", h.server.Listener.Addr().(*net.TCPAddr).Port, path)
	fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	webhook := admissionregistrationv1.ValidatingWebhook{
		Name:         name + ".example.org",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: bundle},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{operation},
			Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{
				"configmaps",
			}},
		}},
		FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": h.namespace}},
	}
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := h.api.Get(ctx, client.ObjectKeyFromObject(config), config); err == nil {
		config.Webhooks = []admissionregistrationv1.ValidatingWebhook{webhook}
		return h.api.Update(ctx, config)
	}
	config.Webhooks = []admissionregistrationv1.ValidatingWebhook{webhook}
	return h.api.Create(ctx, config)
}

// settle brings the bundle into the configuration, and waits until the API server
// goes by it: it has read it when it goes by something that was written later.
func (h *hook) settle(t *testing.T, bundle []byte) (bool, error) {
	t.Helper()
	ctx := t.Context()
	if err := h.configure(ctx, h.namespace, "/hook", admissionregistrationv1.Create, bundle); err != nil {
		return false, err
	}
	h.probes++
	path := fmt.Sprintf("/probe/%d", h.probes)
	if err := h.configure(ctx, h.namespace+"-probe", path, admissionregistrationv1.Update, bundle); err != nil {
		return false, err
	}
	wait.Until(t, patience, "the API server goes by the new configuration", func() (string, bool) {
		// Whether this update succeeds is another question.
		_ = h.api.Update(
			ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "there"}}, client.DryRunAll,
		)
		seen := h.marker.Load().(string)
		return seen, seen == path
	})
	return true, nil
}

// The authority is replaced three times while a webhook is called all the time, each
// time over a new connection, and no call fails.
func TestNoWebhookFailsDuringARotation(t *testing.T) {
	const namespace = "certificates-webhook"
	api := newAPI(t, namespace)
	if err := api.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "there",
	}}); err != nil {
		t.Fatal(err)
	}
	h := newHook(t, api, namespace)
	store := &Store{Client: api, Namespace: namespace, Now: time.Now, Random: rand.Reader, Overlap: time.Nanosecond}
	store.Settled = func(_ context.Context, bundle []byte) (bool, error) { return h.settle(t, bundle) }
	want := Requirement{
		Secret: wanted[0].Secret, Usage: Server, DNSNames: append(ServerNames("hook", namespace), "localhost"),
	}
	if _, _, err := store.Ensure(t.Context(), []Requirement{want}); err != nil {
		t.Fatal(err)
	}
	bundle, err := store.Bundle(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.settle(t, bundle); err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var failures atomic.Int64
	var group sync.WaitGroup
	// The server waits for calls at its end, so they end first, also when the test
	// fails.
	finish := func() {
		stop()
		group.Wait()
	}
	t.Cleanup(finish)
	group.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("x-%d", i)}}
			if err := api.Create(ctx, object, client.DryRunAll); err != nil && ctx.Err() == nil {
				failures.Add(1)
				t.Errorf("call %d: %v", i, err)
			}
		}
	})
	authorities := map[string]bool{}
	for range 3 {
		root := &corev1.Secret{}
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: RootSecret}, root); err != nil {
			t.Fatal(err)
		}
		authorities[string(root.Data[KeyCertificate])] = true
		metav1.SetMetaDataAnnotation(&root.ObjectMeta, AnnotationRotate, "")
		if err := api.Update(t.Context(), root); err != nil {
			t.Fatal(err)
		}
		calls := h.calls.Load()
		wait.Until(t, patience, "the authority is replaced", func() (string, bool) {
			if _, _, err := store.Ensure(t.Context(), []Requirement{want}); err != nil {
				t.Fatal(err)
			}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(root), root); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(len(root.Data), root.Annotations),
				len(root.Data) == 2 && !authorities[string(root.Data[KeyCertificate])]
		})
		if h.calls.Load() == calls {
			t.Error("no call was made during the rotation")
		}
	}
	finish()
	t.Logf("%d calls, %d failed", h.calls.Load(), failures.Load())
	if len(authorities) != 3 {
		t.Errorf("%d authorities", len(authorities))
	}
}
