package firstgeneration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// publishTemplates pushes a package of the first generation with templates for the kind Thing of NAME.example.org, and
// its controller. It returns the reference of the package.
func (s *suite) publishTemplates(t *testing.T, name, scope string) string {
	t.Helper()
	s.Push(t, "acme/templating-controller", "v0.4.0", content("templating-controller", "v0.4.0", scope))
	files := filesOf(name, scope)
	files["behavior.yaml"] = fmt.Appendf(
		nil,
		"source: {path: helm-chart}\ncrd: {kind: Thing, apiVersion: %s.example.org/v1}\nengine: {type: helm3, controllerImage: acme/templating-controller:v0.4.0}\n",
		name,
	)
	ref, _ := publish.FirstGeneration(t, s.Registry, "first/"+name, "v1.0.0", files)
	return ref
}

// filesOf returns the files of a package of the first generation with the kind Thing of NAME.example.org, and without a
// controller.
func filesOf(name, scope string) map[string][]byte {
	replace := strings.NewReplacer("NAME", name, "SCOPE", scope)
	return map[string][]byte{
		"app.yaml": []byte(replace.Replace(
			"title: Title of NAME\npackageType: Stack\npermissionScope: SCOPE\ndependsOn: [{crd: mysqlinstances.database.crossplane.io/v1alpha1}]\n",
		)),
		"resources/thing.crd.yaml": []byte(replace.Replace(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.NAME.example.org}
spec:
  group: NAME.example.org
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`)),
	}
}

// definition returns the StackDefinition of a namespace in an API group.
func definition(group, namespace, name string) *unstructured.Unstructured {
	d := &unstructured.Unstructured{}
	d.SetGroupVersionKind(schema.GroupVersionKind{
		Group: group, Version: "v1alpha1", Kind: packagesv1alpha1.StackDefinitionKind,
	})
	d.SetNamespace(namespace)
	d.SetName(name)
	return d
}

// A package with templates is run by the templating controller that it names, for the whole cluster or in one
// namespace. The controller finds its StackDefinition in the group of its version, and may read no other one.
func TestPackageWithTemplatesRunsItsTemplatingController(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	team := s.newNamespace(t, "templates-team")
	wide, narrow := s.publishTemplates(t, "templates-wide", "Cluster"),
		s.publishTemplates(t, "templates-narrow", "Namespaced")
	s.share(t, "templates-narrow", narrow)
	for _, tc := range []struct{ kind, namespace, name, ref string }{
		{packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, "templates-wide", wide},
		{packagesv1alpha1.PackageInstallKind, team, "templates-narrow", narrow},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			in := newInstall(tc.kind, tc.namespace, tc.name, tc.ref)
			s.Create(t, in)
			s.waitFor(t, in, corev1.ConditionTrue, "Available")
			pod := s.deployment(t, tc.namespace, tc.name).Spec.Template.Spec
			controller, templates := pod.Containers[0], pod.InitContainers[0]
			if !strings.HasPrefix(controller.Image, s.Registry+"/acme/templating-controller:v0.4.0@sha256:") ||
				!strings.HasPrefix(templates.Image, tc.ref+"@sha256:") {
				t.Errorf("the images are %s and %s", controller.Image, templates.Image)
			}
			if !slices.Equal(templates.Command, []string{"cp", "-R", "helm-chart/.", "/behaviors"}) ||
				!slices.Contains(controller.Args, "/behaviors") || pod.Volumes[0].EmptyDir == nil {
				t.Errorf("the pod is %+v", pod)
			}
			runtime := env.NewClient(t, s.ServiceAccount(t, tc.namespace, tc.name))
			for _, group := range []string{packagesv1alpha1.Group, packagesv1alpha1.EarlierGroup} {
				d := definition(group, tc.namespace, tc.name)
				if err := runtime.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
					t.Errorf("the controller cannot read its StackDefinition of %s: %v", group, err)
				}
				if kind, _, _ := unstructured.NestedString(d.Object, "spec", "behavior", "crd", "kind"); kind != "Thing" {
					t.Errorf("the StackDefinition is %v", d.Object["spec"])
				}
				other := definition(group, tc.namespace, "other")
				if err := runtime.Get(t.Context(), client.ObjectKeyFromObject(other), other); !apierrors.IsForbidden(err) {
					t.Errorf("the controller reads another StackDefinition: %v", err)
				}
			}
			s.Create(t, thing(tc.name, tc.namespace, "mine"))
			if err := runtime.Delete(t.Context(), thing(tc.name, tc.namespace, "mine")); err != nil {
				t.Errorf("the controller cannot change the custom resources of the package: %v", err)
			}

			d := &packagesv1alpha1.StackDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: tc.name}}
			env.Update(t, s.Env, d, func(d *packagesv1alpha1.StackDefinition) { d.Spec.Behavior.Source.Path = "elsewhere" })
			wait.Until(t, env.Limit, "the StackDefinition is restored", func() (string, bool) {
				err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d)
				return d.Spec.Behavior.Source.Path, err == nil && d.Spec.Behavior.Source.Path == "helm-chart"
			})

			s.Delete(t, in)
			s.WaitGone(t, in)
			// The garbage collector deletes what the install object owns.
			s.WaitGone(t, d)
			s.WaitGone(t, &packagesv1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: tc.name}})
			s.WaitGone(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: tc.name}})
		})
	}
}

// A package that has no templates any more leaves no permissions of its templating controller.
func TestWithoutTemplatesNoPermissionsStay(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	for _, scope := range []string{"Cluster", "Namespaced"} {
		t.Run(scope, func(t *testing.T) {
			name := "templates-until-" + strings.ToLower(scope)
			in := newInstall(
				packagesv1alpha1.ClusterPackageInstallKind, managerNamespace, name, s.publishTemplates(t, name, scope),
			)
			s.Create(t, in)
			s.waitFor(t, in, corev1.ConditionTrue, "Available")
			record := &packagesv1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: name}}
			if granted := s.granted(t, record); len(granted) != 3 {
				t.Errorf("the controller has %v", granted)
			}
			ref, _ := publish.FirstGeneration(t, s.Registry, "first/"+name, "v2.0.0", filesOf(name, scope))
			env.Update(
				t, s.Env, in.(*packagesv1alpha1.ClusterPackageInstall),
				func(in *packagesv1alpha1.ClusterPackageInstall) { in.Spec.Package = ref },
			)
			wait.Until(t, env.Limit, "the controller has no permissions", func() (string, bool) {
				left := s.granted(t, record)
				return fmt.Sprint(left), len(left) == 0
			})
			s.waitFor(t, in, corev1.ConditionTrue, "Available")
			s.WaitGone(t, &appsv1.Deployment{ObjectMeta: record.ObjectMeta})
		})
	}
}
