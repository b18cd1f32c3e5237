package state

import (
	"fmt"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// AnnotationInstalledBy on a Provider, or on its runtime configuration, names the install object that maintains it, as
// KIND/NAMESPACE/NAME. A user hands over a Provider by setting it. A record has it beside its owner reference.
const AnnotationInstalledBy = "xpkg.dev/installed-by"

// InstalledBy returns the value of AnnotationInstalledBy for an install object.
func InstalledBy(in interface {
	PackageKind() string
	GetNamespace() string
	GetName() string
}) string {
	return in.PackageKind() + "/" + in.GetNamespace() + "/" + in.GetName()
}

// ResumeCommand returns the kubectl command that resumes the reconciliation of a paused package.
func ResumeCommand(kind, name string) string {
	return fmt.Sprintf("kubectl annotate %s.pkg %s %s-", strings.ToLower(kind), name, v1.AnnotationPaused)
}

// IsVersion reports whether the reference of an install object names the version with an image and a digest.
func IsVersion(ref oci.Reference, image, digest string) bool {
	installed, err := oci.ParseReference(image, oci.ParseOptions{AllowUntagged: true})
	if !ref.Digest.IsZero() && ref.Digest.String() == digest {
		return true
	}
	return err == nil && ref.Tag == installed.Tag && (ref.Digest.IsZero() || ref.Digest == installed.Digest)
}
