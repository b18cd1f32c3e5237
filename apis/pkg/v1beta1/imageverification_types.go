package v1beta1

// VerificationProvider is a method of verifying images.
//
// +kubebuilder:validation:Enum=Cosign
type VerificationProvider string

// Cosign verifies the signatures and attestations of cosign.
const Cosign VerificationProvider = "Cosign"

// ImageVerification configures how images are verified.
type ImageVerification struct {
	// Provider that verifies the images.
	Provider VerificationProvider `json:"provider"`
	// Cosign configures the provider Cosign.
	// +optional
	Cosign *CosignVerification `json:"cosign,omitempty"`
}

// CosignVerification lists the identities whose signatures are trusted.
type CosignVerification struct {
	// Authorities whose signatures are trusted. One of them is enough.
	Authorities []CosignAuthority `json:"authorities"`

	// TrustedRoot are the certificate authorities, transparency logs and timestamp authorities that are trusted instead of
	// those of the public instance of Sigstore, which are part of the program. Signatures by identities need a time that
	// one of its transparency logs or, if it lists none, of its timestamp authorities has signed.
	// +optional
	TrustedRoot *TrustedRootReference `json:"trustedRoot,omitempty"`
}

// TrustedRootReference names a trust root.
type TrustedRootReference struct {
	// SecretRef names the secret with a trusted_root.json of Sigstore.
	SecretRef SecretKeySelector `json:"secretRef"`
}

// CosignAuthority is a trusted signer.
type CosignAuthority struct {
	// Name of the authority.
	Name string `json:"name"`
	// Key of the authority. An authority has either a key or identities.
	// +optional
	Key *KeyReference `json:"key,omitempty"`
	// Keyless trusts identities that a Fulcio instance has certified.
	// +optional
	Keyless *KeylessReference `json:"keyless,omitempty"`
	// Attestations are required in addition to the signature, each of them.
	// +optional
	Attestations []Attestation `json:"attestations,omitempty"`
}

// KeyReference names a public key.
type KeyReference struct {
	// SecretRef names the secret with the key.
	SecretRef SecretKeySelector `json:"secretRef"`
	// HashAlgorithm of the signature. Default is sha256.
	// +kubebuilder:default="sha256"
	HashAlgorithm string `json:"hashAlgorithm"`
}

// SecretKeySelector names a value in a secret, in the namespace of the package
// manager.
type SecretKeySelector struct {
	// Name of the secret.
	Name string `json:"name"`
	// Key in the secret.
	Key string `json:"key"`
}

// KeylessReference lists the certified identities that are trusted.
type KeylessReference struct {
	// Identities that are trusted. One of them is enough.
	Identities []Identity `json:"identities"`
	// InsecureIgnoreSCT accepts certificates without proof of their inclusion in a
	// certificate transparency log.
	// +optional
	InsecureIgnoreSCT *bool `json:"insecureIgnoreSCT,omitempty"`
}

// Identity is an identity in a certificate. It needs an issuer and a subject. The regular expressions have
// precedence over the strings, and match the whole value.
type Identity struct {
	// Issuer of the identity.
	// +optional
	Issuer string `json:"issuer,omitempty"`
	// Subject of the identity.
	// +optional
	Subject string `json:"subject,omitempty"`
	// IssuerRegExp matches the issuer of the identity.
	// +optional
	IssuerRegExp string `json:"issuerRegExp,omitempty"`
	// SubjectRegExp matches the subject of the identity.
	// +optional
	SubjectRegExp string `json:"subjectRegExp,omitempty"`
}

// Attestation is a required attestation.
type Attestation struct {
	// Name of the attestation.
	Name string `json:"name"`
	// PredicateType of the attestation.
	PredicateType string `json:"predicateType"`
}
