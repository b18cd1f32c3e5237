package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
)

// mutualTLS returns a server configuration with the certificate in a folder, which
// accepts clients with a certificate of the CA there. Each connection reads the files
// again. A missing file is an error at once.
func mutualTLS(folder string) (*tls.Config, error) {
	if _, err := load(folder); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return load(folder) },
	}, nil
}

func load(folder string) (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate: %w", err)
	}
	authorities, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the authorities of clients: %w", err)
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("there is no authority of clients in %s", filepath.Join(folder, "ca.crt"))
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2"},
		ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}
