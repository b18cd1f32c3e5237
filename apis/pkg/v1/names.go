package v1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels that connect the objects of one package.
const (
	// LabelPackage on a revision is the name of its package.
	LabelPackage = "pkg.crossplane.io/package"
	// LabelProviderFamily on a provider revision is the family that its package
	// says it belongs to. Members of a family from one publisher share rights.
	LabelProviderFamily = "pkg.crossplane.io/provider-family"
	// LabelProvider and LabelFunction select the pods of a package.
	LabelProvider = "pkg.crossplane.io/provider"
	LabelFunction = "pkg.crossplane.io/function"
	// LabelRevision selects the pods of one revision.
	LabelRevision = "pkg.crossplane.io/revision"
)

// AnnotationPaused with the value "true" makes every controller leave an object
// alone until the annotation goes away, or the object is deleted.
const AnnotationPaused = "crossplane.io/paused"

// IsPaused reports whether an object has that annotation.
func IsPaused(o metav1.Object) bool { return o.GetAnnotations()[AnnotationPaused] == "true" }

// FinalizerRevision keeps a revision until it has left the Lock.
const FinalizerRevision = "revision.pkg.crossplane.io"

// FinalizerProgram keeps a Provider whose program the package manager runs until its
// definitions are gone: the program has a part in that.
const FinalizerProgram = "xpkg.dev/program"

// DefaultRuntimeConfigName is the name of the DeploymentRuntimeConfig that a
// package uses when it names none.
const DefaultRuntimeConfigName = "default"

// maxSecretName is the longest name of a Secret.
const maxSecretName = 253

// TLSServerSecretName is the name of the Secret with the certificate that the program
// of a package serves with. Crossplane uses the same.
func TLSServerSecretName(pkg string) string { return secretName(pkg, "-tls-server") }

// TLSClientSecretName is the name of the Secret with the certificate that the program
// of a package calls others with. Programs of Functions call nobody.
func TLSClientSecretName(pkg string) string { return secretName(pkg, "-tls-client") }

func secretName(pkg, suffix string) string {
	if len(pkg) > maxSecretName-len(suffix) {
		pkg = strings.TrimRight(pkg[:maxSecretName-len(suffix)], "-.")
	}
	return pkg + suffix
}
