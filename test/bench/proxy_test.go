package bench_test

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A proxy forwards requests to the API server and counts them. Like the API server it uses HTTP/2 and
// TLS on both sides, and it streams bodies, so clients behave as without it. All compared clients use
// the same proxy.
type proxy struct {
	server *httptest.Server
	mu     sync.Mutex
	calls  calls
}

func newProxy(t testing.TB, cfg *rest.Config) *proxy {
	t.Helper()
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	forward := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport,
		// A client may disconnect.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	p.server = httptest.NewUnstartedServer(p.counted(forward))
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.StartTLS()
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// counted records each call when it begins, because the responses to watches never end, and completes
// the record at the end. It does not record renewals of leases, which a manager sends all the time.
func (p *proxy) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := parseCall(r)
		if c.resource == "leases" {
			next.ServeHTTP(w, r)
			return
		}
		p.mu.Lock()
		at := len(p.calls)
		p.calls = append(p.calls, c)
		p.mu.Unlock()
		body := &countedBody{ReadCloser: r.Body}
		r.Body = body
		answer := &countedAnswer{ResponseWriter: w}
		next.ServeHTTP(answer, r)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.calls[at].sent, p.calls[at].received, p.calls[at].ended = body.n, answer.n, time.Now()
	})
}

// mark returns a position in the sequence of calls.
func (p *proxy) mark() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

// since returns the calls since a mark.
func (p *proxy) since(mark int) calls {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(calls(nil), p.calls[mark:]...)
}

func (p *proxy) certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

// config returns the configuration of a client in this process that uses the proxy.
func (p *proxy) config() *rest.Config {
	return &rest.Config{Host: p.server.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: p.certificate()}}
}

// kubeconfig writes a kubeconfig for another process that uses the proxy.
func (p *proxy) kubeconfig(t testing.TB) string {
	t.Helper()
	const name = "bench"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: p.server.URL, CertificateAuthorityData: p.certificate()}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

type countedBody struct {
	io.ReadCloser
	n int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	return n, err
}

type countedAnswer struct {
	http.ResponseWriter
	n int64
}

func (a *countedAnswer) Write(p []byte) (int, error) {
	n, err := a.ResponseWriter.Write(p)
	a.n += int64(n)
	return n, err
}

// Unwrap lets the proxy flush responses, which watches need.
func (a *countedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
