package state

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// AnnotationInstalledBy on a Provider, or on its runtime configuration, names the install object that maintains it, as
// KIND/NAMESPACE/NAME. A user hands over a Provider by setting it. A record has it beside its owner reference.
const AnnotationInstalledBy = "xpkg.dev/installed-by"

// InstalledBy returns the value of AnnotationInstalledBy for an install object.
func InstalledBy(in packagesv1alpha1.Install) string {
	return in.PackageKind() + "/" + in.GetNamespace() + "/" + in.GetName()
}

// InstallCommand returns the kubectl command with a verb, such as "delete", for an install object or a Package, with further words
// of the command line.
func InstallCommand(verb, kind, namespace, name string, more ...string) string {
	words := []string{"kubectl", verb, "--namespace", namespace, strings.ToLower(kind) + "s." + packagesv1alpha1.Group, name}
	return strings.Join(append(words, more...), " ")
}

// ResumeCommand returns the kubectl command that resumes the reconciliation of a paused package, or of a paused object of the first
// generation, which has a namespace.
func ResumeCommand(kind, namespace, name string) string {
	if namespace != "" {
		return InstallCommand("annotate", kind, namespace, name, v1.AnnotationPaused+"-")
	}
	return fmt.Sprintf("kubectl annotate %s.pkg %s %s-", strings.ToLower(kind), name, v1.AnnotationPaused)
}

// ReadInstall returns the install object that a value of AnnotationInstalledBy names, or nil if there is none.
func ReadInstall(ctx context.Context, reader client.Reader, by string) (packagesv1alpha1.Install, error) {
	parts := strings.Split(by, "/")
	if len(parts) != 3 || !slices.Contains(packagesv1alpha1.InstallKinds(), parts[0]) {
		return nil, nil
	}
	in := packagesv1alpha1.NewInstall(parts[0])
	err := reader.Get(ctx, client.ObjectKey{Namespace: parts[1], Name: parts[2]}, in)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return in, nil
}

// IsRecord reports whether a Package records an install object. All other Packages were created by users.
func IsRecord(p *packagesv1alpha1.Package) bool { return isOwnedByInstall(p) || isRestoredRecord(p) }

// IsOwnerlessRecord reports whether a Package is a record without its owner reference, as some backups restore it. Its install object
// adopts it.
func IsOwnerlessRecord(p *packagesv1alpha1.Package) bool {
	return !isOwnedByInstall(p) && isRestoredRecord(p)
}

// isRestoredRecord reports whether a Package has the annotation of the record of an install object with its name.
func isRestoredRecord(p *packagesv1alpha1.Package) bool {
	kind, rest, _ := strings.Cut(p.Annotations[AnnotationInstalledBy], "/")
	return slices.Contains(packagesv1alpha1.InstallKinds(), kind) && rest == p.Namespace+"/"+p.Name
}

func isOwnedByInstall(p *packagesv1alpha1.Package) bool {
	return slices.ContainsFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool { return slices.Contains(packagesv1alpha1.InstallKinds(), r.Kind) })
}

// ListObjects returns the objects of the first generation of a kind: install objects, or the Packages that users created.
func ListObjects(ctx context.Context, reader client.Reader, kind string, opts ...client.ListOption) ([]packagesv1alpha1.Object, error) {
	var out []packagesv1alpha1.Object
	if kind != packagesv1alpha1.PackageKind {
		installs, err := ListInstalls(ctx, reader, kind, opts...)
		for _, in := range installs {
			out = append(out, in)
		}
		return out, err
	}
	list := &packagesv1alpha1.PackageList{}
	if err := reader.List(ctx, list, opts...); err != nil {
		return nil, fmt.Errorf("list Packages: %w", err)
	}
	for i := range list.Items {
		if p := &list.Items[i]; !IsRecord(p) {
			out = append(out, p)
		}
	}
	return out, nil
}

// ListInstalls returns the install objects of a kind, and none for another kind.
func ListInstalls(ctx context.Context, reader client.Reader, kind string, opts ...client.ListOption) ([]packagesv1alpha1.Install, error) {
	var out []packagesv1alpha1.Install
	switch kind {
	case packagesv1alpha1.ClusterPackageInstallKind:
		list := &packagesv1alpha1.ClusterPackageInstallList{}
		if err := reader.List(ctx, list, opts...); err != nil {
			return nil, fmt.Errorf("list ClusterPackageInstalls: %w", err)
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case packagesv1alpha1.PackageInstallKind:
		list := &packagesv1alpha1.PackageInstallList{}
		if err := reader.List(ctx, list, opts...); err != nil {
			return nil, fmt.Errorf("list PackageInstalls: %w", err)
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

// IsVersion reports whether the reference of an install object names the version with an image and a digest.
func IsVersion(ref oci.Reference, image, digest string) bool {
	installed, err := oci.ParseReference(image, oci.ParseOptions{AllowUntagged: true})
	if !ref.Digest.IsZero() && ref.Digest.String() == digest {
		return true
	}
	return err == nil && ref.Tag == installed.Tag && (ref.Digest.IsZero() || ref.Digest == installed.Digest)
}
