package firstgen

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// A user of install objects does not use the consents that an administrator gave to a Provider for another repository,
// or for the program of another registry: the manager, which may change them, refuses the change.
func TestInstallObjectsDoNotMoveConsents(t *testing.T) {
	const former = "r.example.org/acme/boats:v1"
	for _, consented := range []string{
		"", webhooks.AnnotationAllowed, revision.AnnotationAdopt, permission.AnnotationApproved,
	} {
		for _, tc := range []struct {
			name, ref, source    string
			moved, otherPrograms bool
		}{
			{name: "the same", ref: former},
			{name: "another version", ref: "r.example.org/acme/boats:v2"},
			{name: "another repository", ref: "r.example.org/acme/ships:v1", moved: true},
			{name: "another registry", ref: "evil.example.org/acme/boats:v1", moved: true},
			{name: "images from another registry", ref: former, source: "evil.example.org", otherPrograms: true},
		} {
			in := newInstall(packagesv1alpha1.ClusterPackageInstallKind).(*packagesv1alpha1.ClusterPackageInstall)
			in.Spec.Source = tc.source
			p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{
				Name:        ProviderName(in.Namespace, in.Name, "crossplane-system"),
				Annotations: map[string]string{state.AnnotationInstalledBy: state.InstalledBy(in)},
			}}
			p.Spec.Package = former
			rev := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{
				Name: "boats-1", Labels: map[string]string{v1.LabelPackage: p.Name}, Annotations: map[string]string{},
			}}
			// An approval belongs to the repository of its revision, and is not inherited from another one.
			refused := consented != "" && tc.otherPrograms ||
				consented != "" && consented != permission.AnnotationApproved && tc.moved
			switch consented {
			case "":
			case permission.AnnotationApproved:
				rev.Annotations[consented] = "abc"
			default:
				p.Annotations[consented] = "mutate * apps/deployments"
			}
			r := &ClusterInstalls{Base: *newBase(t, p, rev)}
			err := r.ensureProvider(t.Context(), in, oci.MustParseReference(tc.ref))
			now := &v1.Provider{}
			if err := r.API.Client.Get(t.Context(), client.ObjectKeyFromObject(p), now); err != nil {
				t.Fatal(err)
			}
			isChanged := now.Spec.Package != former || now.Annotations[revision.AnnotationImageSource] != ""
			if refused && (!errors.Is(err, webhooks.ErrNotAllowed) || isChanged) ||
				!refused && (err != nil || now.Spec.Package != tc.ref) {
				t.Errorf(
					"%s, with the consent %q: %v; the Provider has %s and %v", tc.name, consented, err, now.Spec.Package,
					now.Annotations,
				)
			}
		}
	}
}
