package imageconfig

import (
	"crypto"
	"fmt"
	"regexp"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// HashAlgorithms are the hash algorithms of signatures by keys. Empty is the default.
var HashAlgorithms = map[string]crypto.Hash{
	"": crypto.SHA256, "sha224": crypto.SHA224, "sha256": crypto.SHA256, "sha384": crypto.SHA384, "sha512": crypto.SHA512,
}

// problemOf returns what is wrong with a requirement for signatures, apart from its secrets, or "".
func problemOf(c *v1beta1.CosignVerification) string {
	switch {
	case c == nil:
		return "has no cosign configuration"
	case len(c.Authorities) == 0:
		return "has no authority, so that it would trust none"
	}
	for _, a := range c.Authorities {
		if problem := problemOfAuthority(a); problem != "" {
			return fmt.Sprintf("has the authority %q %s", a.Name, problem)
		}
	}
	return ""
}

func problemOfAuthority(a v1beta1.CosignAuthority) string {
	switch {
	case a.Key == nil && a.Keyless == nil:
		return "with neither a key nor identities, which would trust every signer"
	case a.Key != nil && a.Keyless != nil:
		return "with a key and identities: write two authorities, of which one is enough"
	case a.Key != nil && HashAlgorithms[a.Key.HashAlgorithm] == 0:
		return fmt.Sprintf("with the hash algorithm %q: use sha224, sha256, sha384 or sha512", a.Key.HashAlgorithm)
	case a.Keyless != nil && len(a.Keyless.Identities) == 0:
		return "without identities, which would trust every signer"
	}
	for _, t := range a.Attestations {
		if t.PredicateType == "" {
			return "with an attestation without predicateType"
		}
	}
	if a.Keyless == nil {
		return ""
	}
	for _, i := range a.Keyless.Identities {
		for _, part := range []struct{ name, value, pattern string }{
			{"issuer", i.Issuer, i.IssuerRegExp}, {"subject", i.Subject, i.SubjectRegExp},
		} {
			if part.value == "" && part.pattern == "" {
				return fmt.Sprintf("with an identity that cannot be used: it has no %s, so that it would accept any", part.name)
			}
			if _, err := regexp.Compile(part.pattern); err != nil {
				return fmt.Sprintf("with an identity that cannot be used: its %sRegExp: %v", part.name, err)
			}
		}
	}
	return ""
}
