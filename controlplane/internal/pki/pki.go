// Package pki makes the keys and certificates of a control plane and keeps them in
// a folder.
//
// They are made once. A start makes those again that are damaged, that have less
// than half of their life left, or that do not fit any more; so a control plane can
// run for at least a year without a restart.
package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"
)

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 2 * 365 * 24 * time.Hour
)

// Files are the paths of everything that the programs of a control plane read.
type Files struct {
	// CA is the certificate of the authority that signed all others.
	CA string
	// Server is the serving certificate of the API server.
	Server Pair
	// Admin is the client certificate of the administrator.
	Admin Pair
	// Controllers is the client certificate of the controllers.
	Controllers Pair
	// ServiceAccounts is the private key that signs the tokens of service accounts.
	ServiceAccounts string
}

// Pair is a certificate and its private key, as paths of PEM files.
type Pair struct{ Certificate, Key string }

// Ensure creates missing or outdated files in the folder and returns their paths. The address is the IP address on
// which the API server listens, and serviceIP the address of its Service.
func Ensure(folder string, address, serviceIP net.IP, now time.Time) (Files, error) {
	files := Files{
		CA:              filepath.Join(folder, "ca.crt"),
		Server:          pair(folder, "apiserver"),
		Admin:           pair(folder, "admin"),
		Controllers:     pair(folder, "controllers"),
		ServiceAccounts: filepath.Join(folder, "service-account.key"),
	}
	ca, err := ensureAuthority(pair(folder, "ca"), now)
	if err != nil {
		return Files{}, fmt.Errorf("certificate authority: %w", err)
	}
	err = errors.Join(
		ensureCertificate(files.Server, serverRequest(address, serviceIP), ca, now),
		ensureCertificate(files.Admin, clientRequest("xpkg-admin"), ca, now),
		ensureCertificate(files.Controllers, clientRequest("system:kube-controller-manager"), ca, now),
		ensureKey(files.ServiceAccounts),
	)
	return files, err
}

func pair(folder, name string) Pair {
	return Pair{filepath.Join(folder, name+".crt"), filepath.Join(folder, name+".key")}
}

// serverRequest names the API server as clients outside and inside the cluster do.
func serverRequest(address, serviceIP net.IP) x509.Certificate {
	return x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local",
		},
		IPAddresses: []net.IP{address, serviceIP, net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
}

// clientRequest asks for a client of the group that may do everything. The
// controllers need that too: they act with one identity, not with one for each.
func clientRequest(name string) x509.Certificate {
	return x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: []string{"system:masters"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}
