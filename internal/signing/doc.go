// Package signing signs images: it makes Sigstore bundles, as cosign 3 does, and attaches them to images in registries.
// Package signature verifies them.
package signing

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// ErrKey is the code for a private key that cannot be used.
var ErrKey = errcode.Code{
	Name: "SigningKey", Class: errcode.Usage,
	Cause: "The private key that signs cannot be read: the file contains no private key in PEM, or its password is missing or wrong.",
	Fix:   "Name a private key in PEM: PKCS #8, or one that `cosign generate-key-pair` wrote, with its password in COSIGN_PASSWORD.",
}

// Codes returns the error codes that this package defines.
func Codes() []errcode.Code { return []errcode.Code{ErrKey} }
