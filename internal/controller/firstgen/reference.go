package firstgen

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Reference returns the reference of a package with its registry and a tag or digest. A source applies to a name
// without a registry, and a name without a tag has the tag latest.
func (o Options) Reference(source, name string) (oci.Reference, error) {
	registry := o.registry()
	// A source can contain the first part of the repository.
	name = firstgen.WithRegistry(name, source)
	ref, err := oci.ParseReference(name, oci.ParseOptions{DefaultRegistry: registry, AllowUntagged: true})
	if err != nil {
		return oci.Reference{},
			ErrReference.New(err, "%.200q is not the reference of a package", errcode.HideCredentials(name))
	}
	if ref.Tag == "" && ref.Digest.IsZero() {
		ref = ref.WithTag("latest")
	}
	return ref, nil
}

// imageIn returns the reference of an image of a package: an image that names no registry is in the source of the
// install object, otherwise in the registry of the package.
func imageIn(in packagesv1alpha1.Install, c content, image string) string {
	return firstgen.WithRegistry(image, cmp.Or(in.InstallSpec().Source, c.origin.Registry))
}

// checkSpec fails unless exactly one of package and crd is set, and for a source with credentials, which would be
// copied to other objects.
func checkSpec(spec *packagesv1alpha1.InstallSpec) error {
	if (spec.Package == "") == (spec.CRD == "") {
		return ErrReference.New(
			nil, "the spec sets %s of package and crd", map[bool]string{true: "neither", false: "both"}[spec.Package == ""],
		)
	}
	if errcode.HideCredentials(spec.Source) != spec.Source {
		return ErrReference.New(nil, "the source contains credentials").
			WithDo("Remove the user and the password from spec.source, and name a Secret with them in spec.imagePullSecrets.")
	}
	return nil
}

// maxName is the maximum length of the names of a Provider and of the controller of a Package, which are also labels.
const maxName = 63

// checkName fails with PackageNameTooLong for an object whose controller would have its name.
func checkName(o packagesv1alpha1.Object) error {
	if n := len(o.GetName()); n > maxName {
		return revision.ErrNameTooLong.New(
			nil, "the name of the %s has %d characters, and the labels of its controller have at most %d", o.PackageKind(), n,
			maxName,
		).
			WithDo("Create the object with a shorter name.")
	}
	return nil
}

// ProviderName returns the name of the Provider of a ClusterPackageInstall: the name of the install object in the
// namespace of the manager, and elsewhere the name with the namespace.
func ProviderName(namespace, name, manager string) string {
	full := name
	if namespace != manager {
		full = namespace + "-" + name
	}
	return shorten(strings.ReplaceAll(full, ".", "-"))
}

// shorten returns a name of at most maxName bytes. The end of a longer one becomes a digest.
func shorten(name string) string {
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	digest := hex.EncodeToString(sum[:])[:10]
	return strings.TrimRight(name[:maxName-len(digest)-1], "-") + "-" + digest
}

// SharedProviderNames returns the names of the Provider that the manager creates for the PackageInstalls of a
// repository: the path of the repository and, if the Provider of another repository has this name, a unique one.
func SharedProviderNames(ref oci.Reference) []string {
	path := strings.ToLower(ref.RepositoryPath())
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, path), "-")
	return []string{shorten(name), oci.FriendlyID(name, oci.DigestOf([]byte(ref.Name())).Hex())}
}
