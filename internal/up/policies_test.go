//go:build unix

package up_test

import (
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/up"
)

// The fences hold without a manager, and after a client has deleted every admission policy that the API has.
func TestNoClientRemovesTheFences(t *testing.T) {
	needControlPlane(t)
	running := start(t, up.Options{
		Dir:      filepath.Join(t.TempDir(), "data"),
		Policies: controller.Options{}.StaticFences(up.ManagerName),
	})
	config, err := clientcmd.BuildConfigFromFlags("", running.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{admissionv1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	administrator, err := crclient.New(config, crclient.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	boats := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "boats.fenced.test", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: v1.GroupVersion.String(), Kind: v1.ProviderKind, Name: "boats", UID: "1"},
		}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "fenced.test", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Boat", Plural: "boats"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
				},
			}},
		},
	}
	if err := administrator.Create(t.Context(), boats); err != nil {
		t.Fatal(err)
	}
	for _, o := range []crclient.Object{
		&admissionv1.ValidatingAdmissionPolicyBinding{}, &admissionv1.ValidatingAdmissionPolicy{},
	} {
		if err := administrator.DeleteAllOf(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	err = administrator.Delete(t.Context(), boats)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "boats.fenced.test belongs to Provider/boats") ||
		!strings.Contains(err.Error(), fence.RemovalsName+fence.StaticSuffix) {
		t.Errorf("got %v", err)
	}
	config.Impersonate.UserName, config.Impersonate.Groups = up.ManagerName, []string{"system:masters"}
	manager, err := crclient.New(config, crclient.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := manager.Delete(t.Context(), boats); err != nil {
		t.Errorf("the manager: %v", err)
	}
}
