package clouds

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Network connects the hosts of the clouds to a handler on the loopback interface.
type Network struct {
	// Roots contains the authority of the certificates of all hosts.
	Roots *x509.CertPool
	ports map[string]string
}

// Serve serves a handler for all hosts of clouds, with and without TLS.
func Serve(t testing.TB, handler http.Handler) *Network {
	t.Helper()
	certificate, leaf := Certificate(t)
	plain, secure := httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	n := &Network{Roots: x509.NewCertPool(), ports: map[string]string{
		"80": plain.Listener.Addr().String(), "443": secure.Listener.Addr().String(),
	}}
	n.Roots.AddCert(leaf)
	return n
}

// Dial connects to the handler in place of a host, by its port, and to other servers on the loopback interface.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	switch {
	case err != nil:
		return nil, err
	case host == "127.0.0.1":
		return new(net.Dialer).DialContext(ctx, network, address)
	case n.ports[port] == "":
		return nil, fmt.Errorf("the test has no %s", address)
	}
	return new(net.Dialer).DialContext(ctx, network, n.ports[port])
}

// Names are the names of the certificate of the clouds.
var Names = []string{
	"*.dkr.ecr.us-east-1.amazonaws.com", "*.us-east-1.amazonaws.com", "*.ecr.us-east-1.amazonaws.com",
	"*.ecr-public.us-east-1.amazonaws.com", "*.cn-north-1.amazonaws.com.cn", "*.ecr.cn-north-1.amazonaws.com.cn",
	"*.us-east-1.api.aws", "*.azurecr.io", "login.microsoftonline.com", "*.pkg.dev", "*.googleapis.com",
}

// Certificate returns a certificate for the clouds and for further names, which is its own authority.
func Certificate(t testing.TB, names ...string) (tls.Certificate, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: append(names, Names...),
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, leaf
}

// variables are the variables of the environment from which an identity is read.
var variables = []string{
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE",
	"AWS_ROLE_SESSION_NAME", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN",
	"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
	"AWS_EC2_METADATA_DISABLED", "AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
	"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_ECR", "AWS_ENDPOINT_URL_ECR_PUBLIC", "AWS_ENDPOINT_URL_STS",
	"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_AUTHORITY_HOST",
	"AZURE_POD_IDENTITY_AUTHORITY_HOST", "GOOGLE_APPLICATION_CREDENTIALS", "GCE_METADATA_HOST", "APPDATA",
}

// ClearEnvironment makes the environment of a test one without any identity, and returns its home folder, which is
// also its only folder with programs.
func ClearEnvironment(t *testing.T) string {
	t.Helper()
	for _, name := range variables {
		t.Setenv(name, "")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("PATH", home)
	return home
}
