package firstgeneration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
)

// The package and the image of install.yaml are in the source of the install object, with its path, and the pull
// secrets of the install object are those of the Deployment: for the whole cluster, and in one namespace.
func TestSourceAndPullSecretsApplyToThePackageAndItsController(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	team := s.newNamespace(t, "settings-team")
	s.Push(t, "mirror/acme/controller", "v7", content("controller", "v7", "Cluster"))
	for _, tc := range []struct{ kind, namespace, name, scope string }{
		{packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, "settings-wide", "Cluster"},
		{packagesv1alpha1.PackageInstallKind, team, "settings-narrow", "Namespaced"},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			ref := s.publishController(t, "mirror/first/"+tc.name, tc.name, tc.scope)
			if tc.namespace != managerNamespace {
				s.share(t, tc.name, ref)
			}
			s.EnsureCreated(t, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "settings-credentials"},
				Type:       corev1.SecretTypeDockerConfigJson,
				Data: map[string][]byte{
					corev1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths":{%q:{"username":"user","password":"secret"}}}`, s.Registry),
				},
			})
			in := newInstall(tc.kind, tc.namespace, tc.name, "first/"+tc.name+":v1.0.0")
			in.InstallSpec().Source = s.Registry + "/mirror"
			in.InstallSpec().ImagePullSecrets = []packagesv1alpha1.SecretReference{{Name: "settings-credentials"}}
			s.Create(t, in)
			s.waitFor(t, in, corev1.ConditionTrue, "Available")

			deployment := tc.name
			if tc.namespace == managerNamespace {
				p := &v1.Provider{}
				if err := s.Client.Get(t.Context(), client.ObjectKey{Name: tc.name}, p); err != nil {
					t.Fatal(err)
				}
				if p.Spec.Package != ref || len(p.Spec.PackagePullSecrets) != 1 {
					t.Errorf("the Provider has the package %s and the pull secrets %v", p.Spec.Package, p.Spec.PackagePullSecrets)
				}
				deployment = p.Status.CurrentRevision
			}
			pod := s.deployment(t, tc.namespace, deployment).Spec.Template.Spec
			image := s.Registry + "/mirror/acme/controller:v7@sha256:"
			if !strings.HasPrefix(pod.Containers[0].Image, image) ||
				!slices.Contains(pod.ImagePullSecrets, corev1.LocalObjectReference{Name: "settings-credentials"}) {
				t.Errorf(
					"the pod has the image %s and the pull secrets %v, want %s", pod.Containers[0].Image, pod.ImagePullSecrets, image,
				)
			}
			if raw := string(s.record(t, in).Spec.Controller.Deployment.Spec.Raw); !strings.Contains(raw, s.Registry+
				"/mirror/acme/controller:v7") || !strings.Contains(raw, "settings-credentials") {
				t.Errorf("the record has the Deployment %s", raw)
			}
			s.Delete(t, in)
			s.WaitGone(t, in)
			if tc.namespace != managerNamespace {
				s.Delete(t, env.NewProvider(tc.name, ""))
			}
		})
	}
}

// publishController pushes a package of the first generation whose controller has an image of its own.
func (s *suite) publishController(t *testing.T, repository, name, scope string) string {
	t.Helper()
	ref, _ := publish.FirstGeneration(t, s.Registry, repository, "v1.0.0", map[string][]byte{
		"app.yaml": fmt.Appendf(nil, "title: %s\npackageType: Provider\npermissionScope: %s\n", name, scope),
		"install.yaml": []byte(`apiVersion: apps/v1
kind: Deployment
metadata: {name: controller}
spec:
  selector: {matchLabels: {app: controller}}
  template:
    metadata: {labels: {app: controller}}
    spec: {containers: [{name: controller, image: "acme/controller:v7"}]}
`),
		"resources/thing.crd.yaml": []byte(strings.TrimPrefix(
			publish.Definition(name+".example.org", "Thing", "one"), "---\n",
		)),
	})
	return ref
}
