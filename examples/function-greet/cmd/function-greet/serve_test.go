package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// authority signs certificates of servers and clients.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true,
	}
	a := authority{template, newKey(t)}
	a.cert = a.sign(t, template, &a.key.PublicKey)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a authority) sign(t *testing.T, template *x509.Certificate, public *ecdsa.PublicKey) *x509.Certificate {
	t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, public, a.key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// issue writes a certificate with its key, and the authorities, into a folder.
func (a authority) issue(t *testing.T, folder string, serial int64, trusted ...authority) {
	t.Helper()
	key := newKey(t)
	c := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames:    []string{"function-greet"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, &key.PublicKey)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var bundle []byte
	for _, other := range append(trusted, a) {
		bundle = append(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.cert.Raw})...)
	}
	for name, data := range map[string][]byte{
		"ca.crt": bundle, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}),
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// serve runs the function, and returns its address.
func serve(t *testing.T, o options) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.network, o.address = "tcp", l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, o) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return o.address
}

// call calls the function once over a connection of its own.
func call(t *testing.T, address string, creds credentials.TransportCredentials) error {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err = fnv1.NewFunctionRunnerServiceClient(conn).
		RunFunction(ctx, &fnv1.RunFunctionRequest{}, grpc.WaitForReady(false))
	return err
}

// eventually calls until the server has begun to listen.
func eventually(t *testing.T, address string, creds credentials.TransportCredentials) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := call(t, address, creds)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func client(t *testing.T, folder string, trusted authority, anonymous bool) credentials.TransportCredentials {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(trusted.cert)
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: "function-greet"}
	if !anonymous {
		own, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return credentials.NewTLS(config)
}

// Only who has a certificate of the authority is served.
func TestMutualTLS(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	server, known, stranger := t.TempDir(), t.TempDir(), t.TempDir()
	a.issue(t, server, 2)
	a.issue(t, known, 3)
	other.issue(t, stranger, 4)
	address := serve(t, options{certificates: server})
	eventually(t, address, client(t, known, a, false))
	for name, creds := range map[string]credentials.TransportCredentials{
		"without a certificate": client(t, known, a, true), "with one of another authority": client(t, stranger, a, false),
		"without TLS": insecure.NewCredentials(),
	} {
		if err := call(t, address, creds); err == nil {
			t.Errorf("a client %s is served", name)
		}
	}
	if err := call(t, address, client(t, known, other, false)); err == nil {
		t.Error("a client that trusts another authority takes the server for genuine")
	}
}

// The next connection uses renewed certificates, for the server's own certificate and for
// the accepted clients.
func TestCertificatesAreReadAnew(t *testing.T) {
	old, next := newAuthority(t), newAuthority(t)
	server, first, second := t.TempDir(), t.TempDir(), t.TempDir()
	old.issue(t, server, 2)
	old.issue(t, first, 3)
	next.issue(t, second, 4)
	address := serve(t, options{certificates: server})
	eventually(t, address, client(t, first, old, false))
	next.issue(t, server, 5, old)
	for _, folder := range []string{first, second} {
		if err := call(t, address, client(t, folder, next, false)); err != nil {
			t.Error(err)
		}
	}
}

func TestInsecure(t *testing.T) {
	eventually(t, serve(t, options{insecure: true}), insecure.NewCredentials())
}

// Missing files are reported at startup, not to the first caller.
func TestMissingCertificates(t *testing.T) {
	half := t.TempDir()
	newAuthority(t).issue(t, half, 2)
	if err := os.WriteFile(filepath.Join(half, "ca.crt"), []byte("no authority"), 0o600); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{
		"": "TLS_SERVER_CERTS_DIR", t.TempDir(): "cannot read the certificate", half: "no authority of clients",
	} {
		err := run(t.Context(), options{network: "tcp", address: "127.0.0.1:0", certificates: folder})
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
