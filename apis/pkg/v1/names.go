package v1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels that connect the objects of one package.
const (
	// LabelPackage on a revision is the name of its package.
	LabelPackage = "pkg.crossplane.io/package"
	// LabelProviderFamily on a provider revision is the family that its package declares.
	// Members of a family from one publisher share permissions.
	LabelProviderFamily = "pkg.crossplane.io/provider-family"
	// LabelProvider and LabelFunction are on the pods of a package, with its name.
	LabelProvider = "pkg.crossplane.io/provider"
	LabelFunction = "pkg.crossplane.io/function"
	// LabelRevision selects the pods of one revision.
	LabelRevision = "pkg.crossplane.io/revision"
)

// AnnotationOnDelete on a package answers what happens to its custom resources when it is deleted: "orphan" keeps them
// with all objects of the package, and "cascade=N" deletes them if they are at most N. The manager deletes no package
// with custom resources without an answer. On an object of a package, "cascade" lets a user delete it.
const AnnotationOnDelete = "xpkg.dev/on-delete"

// AnnotationRetry on a package makes the package manager try the requested version again, once for each
// new value. It copies the annotation to the revision of that version.
const AnnotationRetry = "xpkg.dev/retry"

// IsRetryHandled reports whether the value of AnnotationRetry of a package or a revision is the last one that
// its controller has handled. Without the annotation, nothing is left to handle.
func IsRetryHandled(o metav1.Object, lastHandled string) bool {
	value := o.GetAnnotations()[AnnotationRetry]
	return value == "" || value == lastHandled
}

// AnnotationPaused with the value "true" pauses the reconciliation of an object until the
// annotation is removed or the object is deleted.
const AnnotationPaused = "crossplane.io/paused"

// IsPaused reports whether an object has AnnotationPaused with the value "true".
func IsPaused(o metav1.Object) bool { return o.GetAnnotations()[AnnotationPaused] == "true" }

// FinalizerRevision is the finalizer of a revision that Crossplane core manages. The manager removes it: an entry of
// the Lock is removed after its revision is deleted.
const FinalizerRevision = "revision.pkg.crossplane.io"

// FinalizerRuntimeProtection keeps a deleted Provider or Configuration, and its runtime, until its CRDs are gone:
// the runtime removes the finalizers of custom resources and converts them.
const FinalizerRuntimeProtection = "xpkg.dev/runtime-protection"

// DefaultRuntimeConfigName is the name of the DeploymentRuntimeConfig that a
// package uses when it names none.
const DefaultRuntimeConfigName = "default"

// RootCASecretName is the name of the Secret with the CA that signs the certificates of
// runtimes. Crossplane uses the same name.
const RootCASecretName = "crossplane-root-ca"

// maxSecretName is the maximum length of the name of a Secret.
const maxSecretName = 253

// TLSServerSecretName returns the name of the Secret with the server certificate of the
// runtime of a package. Crossplane uses the same name.
func TLSServerSecretName(pkg string) string { return secretName(pkg, tlsServerSuffix) }

// TLSClientSecretName returns the name of the Secret with the client certificate of the runtime
// of a package. The runtime of a Function has none.
func TLSClientSecretName(pkg string) string { return secretName(pkg, tlsClientSuffix) }

// IsTLSSecretName reports whether a Secret is named as one with the certificate of a package.
func IsTLSSecretName(name string) bool {
	return strings.HasSuffix(name, tlsServerSuffix) || strings.HasSuffix(name, tlsClientSuffix)
}

const tlsServerSuffix, tlsClientSuffix = "-tls-server", "-tls-client"

func secretName(pkg, suffix string) string {
	if len(pkg) > maxSecretName-len(suffix) {
		pkg = strings.TrimRight(pkg[:maxSecretName-len(suffix)], "-.")
	}
	return pkg + suffix
}
