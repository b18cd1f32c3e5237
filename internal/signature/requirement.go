package signature

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
)

// A Requirement is what an ImageConfig requires of the signatures of an image: that one of the authorities has signed
// it, and has made all attestations of that authority.
type Requirement struct {
	// Config is the name of the ImageConfig, and empty if the requirement does not come from one.
	Config string
	// fingerprint identifies the requirement with the content of its Secrets.
	fingerprint string
	authorities []authority
}

// authority is a signer with a key, or with identities that a certificate authority of the trust root certifies.
type authority struct {
	name string
	// key and keyID are set for an authority with a key. The key ID is the digest of the key.
	key        signature.Verifier
	keyID      string
	identities []verify.CertificateIdentity
	// options are those of the verification of certificates.
	options []verify.VerifierOption
	root    root.TrustedMaterial
	// attestations are types of predicates.
	attestations []string
}

// predicates are the short names of types of predicates.
var predicates = map[string]string{
	"custom": "https://cosign.sigstore.dev/attestation/v1", "vuln": "https://cosign.sigstore.dev/attestation/vuln/v1",
	"slsaprovenance": "https://slsa.dev/provenance/v0.2", "slsaprovenance02": "https://slsa.dev/provenance/v0.2",
	"slsaprovenance1": "https://slsa.dev/provenance/v1", "link": "https://in-toto.io/Link/v1",
	"spdx": "https://spdx.dev/Document", "spdxjson": "https://spdx.dev/Document",
	"cyclonedx": "https://cyclonedx.org/bom", "openvex": "https://openvex.dev/ns",
}

// PredicateType returns the type of a predicate for one of its short names, and other types as they are.
func PredicateType(name string) string { return cmp.Or(predicates[name], name) }

// identity returns the matcher of an identity. A regular expression has precedence over a string, and matches the
// whole value.
func identity(i v1beta1.Identity) (verify.CertificateIdentity, error) {
	whole := func(value, pattern string) (string, string) {
		if pattern != "" {
			return "", "^(?:" + pattern + ")$"
		}
		return value, ""
	}
	issuer, issuerPattern := whole(i.Issuer, i.IssuerRegExp)
	subject, subjectPattern := whole(i.Subject, i.SubjectRegExp)
	return verify.NewShortCertificateIdentity(issuer, issuerPattern, subject, subjectPattern)
}

// NewRequirement returns the requirement of an ImageConfig, which package imageconfig has checked. Secret reads a value
// of a Secret. It
// fails with ErrTrust if a Secret has no key or trust root.
func NewRequirement(
	ctx context.Context, config string, c *v1beta1.CosignVerification,
	secret func(ctx context.Context, s v1beta1.SecretKeySelector) ([]byte, error),
) (Requirement, error) {
	spec, err := json.Marshal(c)
	if err != nil {
		return Requirement{}, err
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q %q", config, spec)
	read := func(s v1beta1.SecretKeySelector) ([]byte, error) {
		data, err := secret(ctx, s)
		_, _ = fmt.Fprintf(sum, " %q", data)
		return data, err
	}
	out := Requirement{Config: config}
	trusted, err := trustRoot(config, c, read)
	if err != nil {
		return Requirement{}, err
	}
	for _, a := range c.Authorities {
		next := authority{name: a.Name, root: trusted}
		for _, t := range a.Attestations {
			next.attestations = append(next.attestations, PredicateType(t.PredicateType))
		}
		if a.Key != nil {
			err = next.readKey(config, a.Key, read)
		} else {
			err = next.setIdentities(a.Keyless)
		}
		if err != nil {
			return Requirement{}, err
		}
		out.authorities = append(out.authorities, next)
	}
	out.fingerprint = hex.EncodeToString(sum.Sum(nil))
	return out, nil
}

// publicGood is the trust root of the public instance of Sigstore: the target trusted_root.json of version 14 of its
// TUF repository (github.com/sigstore/root-signing).
//
//go:embed publicgood.json
var publicGood []byte

var publicRoot = sync.OnceValues(func() (root.TrustedMaterial, error) {
	return root.NewTrustedRootFromJSON(publicGood)
})

func trustRoot(
	config string, c *v1beta1.CosignVerification, read func(v1beta1.SecretKeySelector) ([]byte, error),
) (root.TrustedMaterial, error) {
	if c.TrustedRoot == nil {
		return publicRoot()
	}
	data, err := read(c.TrustedRoot.SecretRef)
	if err != nil {
		return nil, fmt.Errorf("the trust root of the ImageConfig %s: %w", config, err)
	}
	out, err := root.NewTrustedRootFromJSON(data)
	if err != nil {
		return nil, notTrust(err, config, c.TrustedRoot.SecretRef, "trust root")
	}
	return out, nil
}

func (a *authority) readKey(
	config string, k *v1beta1.KeyReference, read func(v1beta1.SecretKeySelector) ([]byte, error),
) error {
	data, err := read(k.SecretRef)
	if err != nil {
		return fmt.Errorf("the authority %q of the ImageConfig %s: %w", a.name, config, err)
	}
	key, err := cryptoutils.UnmarshalPEMToPublicKey(data)
	if err == nil {
		a.key, err = signature.LoadVerifier(key, imageconfig.HashAlgorithms[k.HashAlgorithm])
	}
	if err != nil {
		return notTrust(err, config, k.SecretRef, "public key")
	}
	der, err := cryptoutils.MarshalPublicKeyToDER(key)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(der)
	a.keyID = "sha256:" + hex.EncodeToString(sum[:])
	return nil
}

// notTrust returns the error of a key or a trust root that cannot be read.
func notTrust(err error, config string, s v1beta1.SecretKeySelector, what string) error {
	if config == "" {
		return ErrTrust.New(err, "the file is no %s", what).
			WithDo("Name a public key in PEM, or a trusted_root.json of Sigstore.")
	}
	return ErrTrust.New(
		err, "the value %s of the Secret %s, which the ImageConfig %s names, is no %s", s.Key, s.Name, config, what,
	)
}

// setIdentities requires of a certificate what its trust root can prove: the time of the signature, by a transparency
// log or by a timestamp authority, and unless it is ignored, the log of the certificates.
func (a *authority) setIdentities(k *v1beta1.KeylessReference) error {
	a.options = []verify.VerifierOption{verify.WithObserverTimestamps(1)}
	if len(a.root.RekorLogs()) > 0 {
		a.options = append(a.options, verify.WithTransparencyLog(1))
	}
	if k.InsecureIgnoreSCT == nil || !*k.InsecureIgnoreSCT {
		a.options = append(a.options, verify.WithSignedCertificateTimestamps(1))
	}
	for _, i := range k.Identities {
		next, err := identity(i)
		if err != nil {
			return err
		}
		a.identities = append(a.identities, next)
	}
	return nil
}
