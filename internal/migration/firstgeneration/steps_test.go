package firstgeneration

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/xpkg-dev/xpkg/apis"
	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// A manager that runs already may create an object between the read and the write of the migration, which then uses it.
func TestAnObjectThatTheManagerCreatesFirstIsUsed(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	race := interceptor.Funcs{Create: func(
		ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption,
	) error {
		other := o.DeepCopyObject().(client.Object)
		annotations := maps.Clone(other.GetAnnotations())
		annotations["example.org/creator"] = "manager"
		other.SetAnnotations(annotations)
		if err := c.Create(ctx, other); err != nil {
			return err
		}
		return c.Create(ctx, o, options...)
	}}
	m := &Migration{Client: fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(race).Build()}
	in := &install{
		group: packagesv1alpha1.EarlierGroup, kind: "ClusterStackInstall", namespace: "system", name: "boats",
		provider:  "boats",
		object:    &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "u"}}},
		reference: oci.MustParseReference("registry.example.org/acme/boats:v1.0.0"),
	}
	provider, err := m.ensureProvider(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	object, err := m.ensureInstall(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{provider, object} {
		if o.GetName() != "boats" || o.GetAnnotations()["example.org/creator"] != "manager" {
			t.Errorf("%T %s with the annotations %v is not the object of the manager", o, o.GetName(), o.GetAnnotations())
		}
	}
}

// A new install object has the labels and the annotations of the former one.
func TestMovedObjectKeepsItsMetadata(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	m := &Migration{Client: fake.NewClientBuilder().WithScheme(scheme).Build()}
	former := &unstructured.Unstructured{Object: map[string]any{}}
	former.SetLabels(map[string]string{"team": "ships"})
	former.SetAnnotations(map[string]string{"note": "keep", corev1.LastAppliedConfigAnnotation: "{}"})
	object, err := m.ensureInstall(t.Context(), &install{
		group: packagesv1alpha1.EarlierGroup, kind: "ClusterStackInstall", namespace: "system", name: "boats", object: former,
	})
	if err != nil {
		t.Fatal(err)
	}
	if a := object.GetAnnotations(); object.GetLabels()["team"] != "ships" || len(a) != 2 || a["note"] != "keep" {
		t.Errorf("the labels %v and the annotations %v", object.GetLabels(), a)
	}
}

// The Deployment of a controller belongs to the install object if its labels name the object, also without an owner.
// What remains of it is deleted. A Deployment of a user with the name of the controller, which the former package
// manager used, is reported and stays.
func TestControllerOfTheFormerPackageManagerIsStopped(t *testing.T) {
	deployment := func(namespace, name string, labels ...string) appsv1.Deployment {
		d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}}}
		for i := 0; i < len(labels); i += 2 {
			d.Labels[labels[i]] = labels[i+1]
		}
		return d
	}
	in := &install{
		group: packagesv1alpha1.Group, kind: packagesv1alpha1.ClusterPackageInstallKind, namespace: "system", name: "boats",
		object: &unstructured.Unstructured{Object: map[string]any{}},
		record: &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"controllerRef": map[string]any{
			"kind": "Deployment", "namespace": "system", "name": "boats",
		}}}},
	}
	all := []appsv1.Deployment{
		deployment("system", "boats"), deployment("system", "other"), deployment("elsewhere", "boats"),
		deployment("system", "labelled", labelParentName, "boats", labelParentNamespace, "system"),
		deployment("system", "foreign", labelParentName, "boats", labelParentNamespace, "elsewhere"),
		deployment(
			"system", "kind", labelParentName, "boats", labelParentNamespace, "system", labelParentKind, "PackageInstall",
		),
	}
	objects := make([]client.Object, len(all))
	for i := range all {
		all[i].UID = types.UID(all[i].Namespace + all[i].Name)
		objects[i] = &all[i]
	}
	s := &snapshot{installs: []*install{in}}
	in.readObjects(s, all, nil)
	if len(in.deployments) != 1 || in.deployments[0].Name != "labelled" {
		t.Errorf("the controllers are %v", in.deployments)
	}
	if len(s.problems) != 1 || !strings.Contains(s.problems[0].Problem, "deployments.apps system/boats") {
		t.Errorf("the problems are %+v", s.problems)
	}
	m := &Migration{Client: fake.NewClientBuilder().WithScheme(kubernetes.Scheme).WithObjects(objects...).Build()}
	if err := m.deleteRemains(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	left := &appsv1.DeploymentList{}
	if err := m.Client.List(t.Context(), left); err != nil || len(left.Items) != len(all)-1 ||
		slices.ContainsFunc(left.Items, func(d appsv1.Deployment) bool { return d.Name == "labelled" }) {
		t.Errorf("the Deployments %v are left (%v)", left.Items, err)
	}
}
