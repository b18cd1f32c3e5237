package certificates

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Codes for certificates.
var (
	ErrSecretTaken = errcode.Code{
		Name: "CertificateSecretTaken", Class: errcode.Conflict,
		Cause: "A Secret with the name of a package's certificate has other content, or belongs to another package or to Crossplane core.",
		Fix:   "Remove or rename the Secret, or rename the package.",
	}
	ErrNotReady = errcode.Code{
		Name: "CertificateNotReady", Class: errcode.Unavailable,
		Cause: "A Secret whose certificate is issued by another program, such as cert-manager, is incomplete, or its certificate is not valid now.",
		Fix:   "Inspect the Certificate of the Secret; to let xpkg issue the certificate, remove the cert-manager annotations of the Secret.",
	}
	ErrAuthority = errcode.Code{
		Name: "AuthorityUnusable", Class: errcode.Untrusted,
		Cause: "The CA in the Secret crossplane-root-ca cannot sign valid certificates, for example because its constraints exclude these names.",
		Fix:   "Replace the CA, or delete the Secret so that xpkg creates one; certificates in use stay trusted meanwhile.",
	}
	ErrContended = errcode.Code{
		Name: "CertificatesContended", Class: errcode.Conflict,
		Cause: "Another client kept changing the Secrets of certificates while xpkg updated them.",
		Fix:   "No action needed: xpkg retries. If the error persists, look for another manager that writes the Secrets.",
	}
)

// classify returns the error of a call with its code.
func classify(err error, what string, args ...any) error {
	code := apply.ErrServer
	denial, isDenied := apply.DenialOf(err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		code = apply.ErrStopped
	case isDenied:
		code = denial
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		code = apply.ErrForbidden
	case apierrors.IsInvalid(err):
		code = apply.ErrGenerated
	}
	return code.New(err, what, args...)
}

// moved reports whether a write failed because another client has written first.
func moved(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}
