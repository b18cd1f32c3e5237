package firstgen

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// An image that install.yaml names without a registry is in the source of the install object, with its path; otherwise
// in the registry of the package. The Provider of a ClusterPackageInstall records a source that its reference does not
// express.
func TestImagesWithoutARegistryAreInTheSource(t *testing.T) {
	const ref = "r.example.org/mirror/acme/stack:v1"
	for name, tc := range map[string]struct{ source, image, want, recorded string }{
		"no source": {image: "acme/controller:v1", want: "r.example.org/acme/controller:v1"},
		"a registry": {
			source: "r.example.org", image: "acme/controller:v1", want: "r.example.org/acme/controller:v1",
		},
		"a registry and a path": {
			source: "r.example.org/mirror/", image: "acme/controller:v1", want: "r.example.org/mirror/acme/controller:v1",
			recorded: "r.example.org/mirror",
		},
		"another registry": {
			source: "private.example.org", image: "controller", want: "private.example.org/controller",
			recorded: "private.example.org",
		},
		"an image with a registry": {
			source: "r.example.org/mirror", image: "quay.io/acme/controller:v1", want: "quay.io/acme/controller:v1",
			recorded: "r.example.org/mirror",
		},
		"the image of the package": {source: "r.example.org/mirror", want: "r.example.org/mirror/acme/stack:v1@" +
			oci.DigestOf([]byte("stack")).String(), recorded: "r.example.org/mirror"},
		"a registry on the machine": {
			source: "localhost/mirror", image: "acme/controller:v1", want: "localhost/mirror/acme/controller:v1",
			recorded: "localhost/mirror",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInstall(packagesv1alpha1.ClusterPackageInstallKind).(*packagesv1alpha1.ClusterPackageInstall)
			in.Spec.Source = tc.source
			c := content{
				pkg: &xpkg.Package{Meta: xpkg.Meta{ControllerImage: tc.image}}, origin: oci.MustParseReference(ref),
				digest: oci.DigestOf([]byte("stack")),
			}
			if got := imageOf(in, c, &runtimedefaults.Defaults{ImageInPackageRegistry: true}); got != tc.want {
				t.Errorf("the record has the image %s, want %s", got, tc.want)
			}
			p := &v1.Provider{}
			p.Annotations = map[string]string{revision.AnnotationImageSource: "former.example.org"}
			(&ClusterInstalls{Base: *newBase(t)}).setProvider(in, c.origin, p)
			if got := p.Annotations[revision.AnnotationImageSource]; got != tc.recorded {
				t.Errorf("the Provider has the source %q, want %q", got, tc.recorded)
			}
		})
	}
}

// The pull settings of an install object apply to its Provider until the object no longer has them. Settings that it
// never had belong to users.
func TestPullSettingsFollowTheInstallObject(t *testing.T) {
	in := newInstall(packagesv1alpha1.ClusterPackageInstallKind).(*packagesv1alpha1.ClusterPackageInstall)
	p := &v1.Provider{}
	check := func(step string, policy corev1.PullPolicy, secrets ...string) {
		t.Helper()
		for range 2 { // The second time changes nothing.
			setPullSettings(in, p)
			var got []string
			for _, s := range p.Spec.PackagePullSecrets {
				got = append(got, s.Name)
			}
			if p.Spec.PackagePullPolicy != policy || !slices.Equal(got, secrets) {
				t.Errorf(
					"%s: the policy %q and the secrets %q, want %q and %q", step, p.Spec.PackagePullPolicy, got, policy, secrets,
				)
			}
		}
	}
	p.Spec.PackagePullPolicy, p.Spec.PackagePullSecrets = corev1.PullNever,
		[]corev1.LocalObjectReference{{Name: "of-a-user"}}
	check("without settings", corev1.PullNever, "of-a-user")
	in.Spec.ImagePullPolicy, in.Spec.ImagePullSecrets = corev1.PullAlways,
		[]packagesv1alpha1.SecretReference{{Name: "one"}}
	check("with settings", corev1.PullAlways, "one")
	in.Spec.ImagePullSecrets[0].Name = "two"
	check("with another secret", corev1.PullAlways, "two")
	in.Spec.ImagePullSecrets = nil
	check("without secrets", corev1.PullAlways)
	in.Spec.ImagePullPolicy = ""
	check("without a policy", corev1.PullIfNotPresent)
	p.Spec.PackagePullPolicy, p.Spec.PackagePullSecrets = corev1.PullNever,
		[]corev1.LocalObjectReference{{Name: "of-a-user"}}
	check("changed by a user", corev1.PullNever, "of-a-user")
	if len(p.Annotations) != 0 {
		t.Errorf("the annotations %v stay", p.Annotations)
	}
}

func TestReferencesApplyTheSourceAndTheDefaultRegistry(t *testing.T) {
	for _, tc := range []struct{ registry, source, name, want string }{
		{name: "acme/stack:v1", want: "docker.io/acme/stack:v1"},
		{name: "acme/stack", want: "docker.io/acme/stack:latest"},
		{registry: "r.example.org", name: "acme/stack:v1", want: "r.example.org/acme/stack:v1"},
		{registry: "r.example.org", source: "private.example.org", name: "acme/stack:v1", want: "private.example.org/acme/stack:v1"},
		{source: "private.example.org/mirror/", name: "acme/stack:v1", want: "private.example.org/mirror/acme/stack:v1"},
		{source: "private.example.org", name: "quay.io/acme/stack:v1", want: "quay.io/acme/stack:v1"},
		{source: "private.example.org", name: "localhost/stack:v1", want: "localhost/stack:v1"},
	} {
		got, err := Options{Registry: tc.registry}.Reference(tc.source, tc.name)
		if err != nil || got.String() != tc.want {
			t.Errorf("%s in the source %q is %s (%v), want %s", tc.name, tc.source, got, err, tc.want)
		}
	}
}
