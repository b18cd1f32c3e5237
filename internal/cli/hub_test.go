package cli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/clouds"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
)

// hub is a registry with TLS that answers for every host at the other end of a
// proxy, Docker Hub among them. The registries of clouds require the identity of the cloud.
type hub struct {
	// proxy is the URL of the proxy, and ca a file with the authority of the
	// registry's certificate.
	proxy, ca string
	// address is where the registry itself listens.
	address string
}

func newHub(tb testing.TB, dir string) hub {
	tb.Helper()
	certificate, authority := newCertificate(tb, append([]string{"index.docker.io", "private.test"}, clouds.Names...)...)
	target, err := url.Parse("http://" + cluster.Registry(tb))
	if err != nil {
		tb.Fatal(err)
	}
	content := httputil.NewSingleHostReverseProxy(target)
	cloud := &clouds.Clouds{Content: content}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.ContainsFunc(
			clouds.Names, func(name string) bool { return strings.HasSuffix(r.Host, strings.TrimPrefix(name, "*")) },
		) {
			cloud.ServeHTTP(w, r)
			return
		}
		content.ServeHTTP(w, r)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	tb.Cleanup(server.Close)
	h := hub{ca: filepath.Join(dir, "ca.pem"), address: server.Listener.Addr().String()}
	if err := os.WriteFile(h.ca, authority, 0o600); err != nil {
		tb.Fatal(err)
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { tunnel(w, r, h.address) }))
	tb.Cleanup(proxy.Close)
	h.proxy = proxy.URL
	return h
}

// tunnel connects a client of the proxy to the registry.
func tunnel(w http.ResponseWriter, r *http.Request, address string) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT", http.StatusBadRequest)
		return
	}
	out, err := net.Dial("tcp", address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer out.Close()
	in, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer in.Close()
	if _, err := io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
}

// newCertificate makes a certificate that is its own authority.
func newCertificate(tb testing.TB, names ...string) (tls.Certificate, []byte) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		tb.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

// newAPIServer serves as much of an API server as an install without --wait needs, for a user
// with permission to create packages only. It returns the text of a kubeconfig.
func newAPIServer(tb testing.TB) string {
	tb.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/apis/pkg.crossplane.io/v1/") {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.Copy(w, r.Body)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403}`)
	}))
	tb.Cleanup(server.Close)
	return `apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
clusters: [{name: test, cluster: {server: "` + server.URL + `"}}]
users: [{name: test, user: {}}]
`
}
