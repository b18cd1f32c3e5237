package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"
)

// An authority signs certificates.
type authority struct{ tls.Certificate }

// ensureAuthority reads the authority, or makes a new one. A new authority makes
// every older certificate invalid, which ensureCertificate notices.
func ensureAuthority(at Pair, now time.Time) (authority, error) {
	if c, err := load(at); err == nil && fresh(c.Leaf, now) && c.Leaf.IsCA {
		return authority{c}, nil
	}
	request := x509.Certificate{
		Subject:               pkix.Name{CommonName: "xpkg control plane"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if err := issue(at, request, authorityLife, nil, now); err != nil {
		return authority{}, err
	}
	c, err := load(at)
	return authority{c}, err
}

// ensureCertificate keeps the certificate if it satisfies the request.
func ensureCertificate(at Pair, request x509.Certificate, ca authority, now time.Time) error {
	if c, err := load(at); err == nil && fresh(c.Leaf, now) && fits(c.Leaf, request, ca, now) {
		return nil
	}
	request.KeyUsage = x509.KeyUsageDigitalSignature
	if err := issue(at, request, certificateLife, &ca, now); err != nil {
		return fmt.Errorf("certificate of %s: %w", request.Subject.CommonName, err)
	}
	return nil
}

// fresh reports whether at least half of the validity is left, and whether the validity has started, in case the
// clock was set back.
func fresh(c *x509.Certificate, now time.Time) bool {
	return now.After(c.NotBefore) && c.NotAfter.Sub(now) > c.NotAfter.Sub(c.NotBefore)/2
}

// fits reports whether the CA signed the certificate, and whether it covers every name and address of the request.
func fits(c *x509.Certificate, request x509.Certificate, ca authority, now time.Time) bool {
	roots := x509.NewCertPool()
	roots.AddCert(ca.Leaf)
	_, err := c.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: request.ExtKeyUsage})
	if err != nil || c.Subject.String() != request.Subject.String() {
		return false
	}
	names := request.DNSNames
	for _, ip := range request.IPAddresses {
		names = append(names, ip.String())
	}
	for _, name := range names {
		if c.VerifyHostname(name) != nil {
			return false
		}
	}
	return true
}

// issue signs a new key and stores both. Without an authority it signs itself.
func issue(at Pair, request x509.Certificate, life time.Duration, ca *authority, now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	// RFC 5280 section 4.1.2.2: a serial number is positive and has at most 20 octets.
	if request.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 159)); err != nil {
		return err
	}
	request.IPAddresses = unique(request.IPAddresses)
	// An hour back, for the clocks of virtual machines that woke up.
	request.NotBefore, request.NotAfter = now.Add(-time.Hour), now.Add(life)
	parent, signer := &request, any(key)
	if ca != nil {
		parent, signer = ca.Leaf, ca.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, &request, parent, key.Public(), signer)
	if err != nil {
		return err
	}
	return store(at, der, key)
}

func unique(ips []net.IP) []net.IP {
	seen := map[string]bool{}
	var out []net.IP
	for _, ip := range ips {
		if !seen[ip.String()] {
			seen[ip.String()] = true
			out = append(out, ip)
		}
	}
	return out
}
