// Package signature decides whether the signatures and attestations of an image meet a requirement.
//
// A Requirement comes from the field "verification" of an ImageConfig. Evidence is what a registry keeps beside an
// image: Sigstore bundles that refer to it, and the signatures and attestations under the tags of cosign. Package fetch
// reads evidence and believes nothing of it. [Requirement.Verify] is a function of the requirement, the digest and the
// evidence alone, so that kept evidence is judged again without a registry, also by another requirement.
//
// The meaning of the fields is stricter than upstream's in these points: an authority requires its signature and each
// of its attestations; it has a key or identities, and an identity has an issuer and a subject; a regular expression
// matches the whole value; and an answer of a registry that is neither a list nor "not found" is no proof of absence.
package signature

import (
	"errors"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

var (
	// ErrNotSigned is the code for an image without the signature or an attestation that an ImageConfig requires.
	ErrNotSigned = errcode.Code{
		Name: "ImageNotSigned", Class: errcode.Untrusted,
		Cause: "An ImageConfig requires a signature or an attestation of the image, and its repository has none. The image is not used.",
		Fix:   "Sign the image, or copy its signatures to the repository from which it is pulled. Correct spec.verification of the ImageConfig if it requires too much.",
	}
	// ErrNotTrusted is the code for signatures or attestations of which none meets the requirement.
	ErrNotTrusted = errcode.Code{
		Name: "SignatureNotTrusted", Class: errcode.Untrusted,
		Cause: "An ImageConfig requires a signature or an attestation of the image, and none of those in its repository is valid and by a trusted key or identity. The image is not used.",
		Fix:   "Check who has signed the image. If the signer is to be trusted, add the key or the identity to spec.verification of the ImageConfig.",
	}
	// ErrUnknown is the code for a registry that does not tell which signatures an image has.
	ErrUnknown = errcode.Code{
		Name: "SignaturesUnknown", Class: errcode.Unavailable,
		Cause: "The registry of an image does not tell which signatures the image has: an ImageConfig requires one, or a bundle must not lack any.",
		Fix:   "Correct the cause in the message, such as missing permissions in the registry. It is tried again.",
	}
	// ErrTrust is the code for keys and trust roots that cannot be read.
	ErrTrust = errcode.Code{
		Name: "TrustUnreadable", Class: errcode.Untrusted,
		Cause: "A key or a trust root that an ImageConfig names for verification is missing or malformed. No image that requires it is used.",
		Fix:   "Correct the Secret in the message: a public key is in PEM, a trust root is a trusted_root.json of Sigstore. It is tried again.",
	}
)

// IsRefused reports whether an image must not be used because of its signatures, or because these are unknown.
func IsRefused(err error) bool {
	return slices.ContainsFunc(Codes(), func(c errcode.Code) bool { return errors.Is(err, c) })
}

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{ErrNotSigned, ErrNotTrusted, ErrUnknown, ErrTrust}
}
