package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"io"
	"math/big"
	"time"
)

const (
	// rsaBits is the key size of a CA. Crossplane supports only RSA keys in PKCS #1, and fails to start
	// otherwise.
	rsaBits = 2048
	// serialBits is the maximum of RFC 5280, section 4.1.2.2, rounded down to whole bytes of a positive number.
	serialBits = 152
	// backdate is the tolerated delay of the clocks of other machines.
	backdate = time.Hour
	// organization is in the subject of CAs, as in Crossplane.
	organization = "Crossplane"
)

// Signer signs certificates.
type Signer struct {
	Certificate *x509.Certificate
	Key         crypto.Signer
}

// newSigner creates a CA with a unique subject, so that a client that selects an issuer by name does not select another
// CA.
func newSigner(now time.Time, validity time.Duration, random io.Reader) (*Signer, error) {
	key, err := rsa.GenerateKey(random, rsaBits)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial(random)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject: pkix.Name{
			Organization: []string{organization}, CommonName: RootSecret + " " + hex.EncodeToString(serial.Bytes())[:12],
		},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(validity),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	c, err := sign(template, template, key.Public(), key, random)
	if err != nil {
		return nil, err
	}
	return &Signer{Certificate: c, Key: key}, nil
}

// keyPEM returns the key, in the form that Crossplane reads if that form supports the key.
func (a *Signer) keyPEM() ([]byte, error) {
	if key, ok := a.Key.(*rsa.PrivateKey); ok {
		return pem.EncodeToMemory(&pem.Block{Type: pemRSAKey, Bytes: x509.MarshalPKCS1PrivateKey(key)}), nil
	}
	return pkcs8(a.Key)
}

func pkcs8(key crypto.Signer) ([]byte, error) {
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: raw}), nil
}

// request describes a certificate to issue.
type request struct {
	usage    Usage
	names    []string
	validity time.Duration
}

// issue creates a key and its certificate. Keys are ECDSA P-256 in PKCS #8, which every TLS library reads and which are
// fast to create for hundreds of packages. The certificate is valid no longer than its CA.
func (a *Signer) issue(now time.Time, r request, random io.Reader) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, nil, err
	}
	serial, err := newSerial(random)
	if err != nil {
		return nil, nil, err
	}
	end := now.Add(r.validity)
	if end.After(a.Certificate.NotAfter) {
		end = a.Certificate.NotAfter
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{Organization: []string{organization}, CommonName: commonName(r.names)},
		DNSNames:     r.names,
		NotBefore:    now.Add(-backdate), NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{r.usage.extended()},
		BasicConstraintsValid: true,
	}
	c, err := sign(template, a.Certificate, private.Public(), a.Key, random)
	if err != nil {
		return nil, nil, err
	}
	if err := a.accepts(c, now, r.usage); err != nil {
		return nil, nil, err
	}
	if key, err = pkcs8(private); err != nil {
		return nil, nil, err
	}
	return certificatePEM(c), key, nil
}

// accepts verifies an issued certificate before it is used: a foreign CA may have constraints.
func (a *Signer) accepts(c *x509.Certificate, now time.Time, usage Usage) error {
	roots := x509.NewCertPool()
	roots.AddCert(a.Certificate)
	_, err := c.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage.extended()}})
	return err
}

// maxCommonName is the maximum length of a common name (RFC 5280, appendix A.1).
const maxCommonName = 64

func commonName(names []string) string {
	if len(names) == 0 || len(names[0]) > maxCommonName {
		return ""
	}
	return names[0]
}

func sign(
	template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer, random io.Reader,
) (*x509.Certificate, error) {
	raw, err := x509.CreateCertificate(random, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(raw)
}

// newSerial returns a random serial number, which is unique for the certificates of an issuer.
func newSerial(random io.Reader) (*big.Int, error) {
	floor := new(big.Int).Lsh(big.NewInt(1), serialBits-1)
	serial, err := rand.Int(random, floor)
	if err != nil {
		return nil, err
	}
	return serial.Add(serial, floor), nil
}

// renewAt returns the time after two thirds of the validity of a certificate.
func renewAt(c *x509.Certificate) time.Time {
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) / 3 * 2)
}
