package controller_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
)

// firstFiles are the files of a package of the first generation, whose API group is NAME.example.org.
func firstFiles(name, install string) map[string][]byte {
	files := map[string][]byte{
		"app.yaml": []byte("apiVersion: 0.1.0\ntitle: " + name +
			"\ncategory: Database\npermissionScope: Cluster\npackageType: Provider\n" +
			"dependsOn: [{crd: '*.workload.crossplane.io/v1alpha1'}]\n"),
		"resources/crd.yaml": []byte("apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: mytypes." +
			name +
			".example.org}\nspec: {group: " + name +
			".example.org, names: {kind: Mytype, plural: mytypes}, scope: Namespaced, version: v1alpha1}\n"),
		"resources/mytype.resource.yaml": []byte("id: Mytype\ntitle: My type\n"),
	}
	if install != "" {
		files["install.yaml"] = []byte(install)
	}
	return files
}

func firstDeployment(image string) string {
	if image != "" {
		image = "\n        image: " + image
	}
	return `apiVersion: apps/v1
kind: Deployment
metadata: {name: controller, labels: {core.crossplane.io/name: sample}}
spec:
  replicas: 1
  selector: {matchLabels: {core.crossplane.io/name: sample}}
  template:
    metadata: {labels: {core.crossplane.io/name: sample}}
    spec:
      containers:
      - name: controller` + image + `
        args: [--sync=1m]
        env:
        - {name: MODE, value: fast}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
`
}

// deploymentOf returns the only Deployment of a package, or nil.
func deploymentOf(t *testing.T, s *testEnv, p v1.Package) *appsv1.Deployment {
	t.Helper()
	var all appsv1.DeploymentList
	if err := s.Client.List(t.Context(), &all, client.InNamespace(controller.DefaultNamespace)); err != nil {
		t.Fatal(err)
	}
	var found *appsv1.Deployment
	for i, d := range all.Items {
		if d.Spec.Template.Labels[v1.LabelProvider] == p.GetName() {
			if found != nil {
				t.Fatal("two Deployments")
			}
			found = &all.Items[i]
		}
	}
	return found
}

// An image of the first generation is installed as a Provider: with its CRDs and their metadata, the permissions of the
// document, and the Deployment of install.yaml, which a DeploymentRuntimeConfig overrides.
func TestFirstGenerationIsInstalledAsAProvider(t *testing.T) {
	s, r := newEnv(t), newRegistry(t)
	s.options.Runtimes, s.options.Settle, s.options.Permissions = runtime.Everywhere(runtime.Deployment), time.Second,
		&controller.Permissions{}
	s.StartKubelet(t, controller.DefaultNamespace)
	s.start(t)
	ref, digest := publish.FirstGeneration(
		t, r.address, "first/sample", "v1", firstFiles("firstsample", firstDeployment("")),
	)
	p := env.NewProvider("firstsample", ref)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	untilRuns(t, s, p, digest.String())

	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "mytypes.firstsample.example.org"}, crd); err != nil {
		t.Fatal(err)
	}
	if crd.Labels[firstgen.LabelManagedBy] != firstgen.ManagedBy ||
		crd.Annotations[firstgen.AnnotationResourceTitle] != "My type" ||
		crd.Annotations[firstgen.AnnotationPackageTitle] != "firstsample" {
		t.Errorf("labels %v, annotations %v", crd.Labels, crd.Annotations)
	}
	d := deploymentOf(t, s, p)
	c := d.Spec.Template.Spec.Containers[0]
	if !slices.Equal(c.Args, []string{"--sync=1m"}) || d.Labels["core.crossplane.io/name"] != "sample" ||
		d.Spec.Template.Labels["core.crossplane.io/name"] != "sample" {
		t.Errorf("args %v, labels %v and %v", c.Args, d.Labels, d.Spec.Template.Labels)
	}
	if i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "MODE" }); i < 0 ||
		c.Env[i].Value != "fast" {
		t.Errorf("variables %v", c.Env)
	}
	role := &rbacv1.ClusterRole{}
	if err := s.Client.Get(
		t.Context(), client.ObjectKey{Name: "crossplane:provider:" + activeOf(t, s, p) + ":system"}, role,
	); err != nil {
		t.Fatal(err)
	}
	for group, verb := range map[string]string{
		"firstsample.example.org": "delete", "workload.crossplane.io": rbacv1.VerbAll,
	} {
		if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, group) && slices.Contains(r.Verbs, verb)
		}) {
			t.Errorf("no permission to %s in %s: %v", verb, group, role.Rules)
		}
	}
	config := &v1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: "firstsample"}}
	config.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{Spec: &appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: manifests.Container, Args: []string{"--admin"},
		}}}},
	}}
	s.CreateTemporary(t, config)
	env.Update(t, s.Env, p, func(p *v1.Provider) {
		p.Spec.RuntimeConfigRef = &v1.RuntimeConfigReference{
			Name: "firstsample",
		}
	})
	eventually(t, "the configuration takes precedence", func() bool {
		d := deploymentOf(t, s, p)
		return d != nil && slices.Equal(d.Spec.Template.Spec.Containers[0].Args, []string{"--admin"})
	})
	remove(t, s, p)
}

// An image that install.yaml names without a registry comes from the registry of the package.
func TestFirstGenerationRunsItsControllerFromTheRegistryOfThePackage(t *testing.T) {
	s, _, r := newDeploymentEnv(t)
	_, controllerDigest := r.push(t, "acme/controller:v7", provider("controller", ""))
	ref, _ := publish.FirstGeneration(
		t, r.address, "first/separate", "v1", firstFiles("firstseparate", firstDeployment("acme/controller:v7")),
	)
	p := env.NewProvider("firstseparate", ref)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	untilRuns(t, s, p, controllerDigest.String())
	if image := deploymentOf(t, s, p).
		Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(image, r.address+"/acme/controller:v7@") {
		t.Errorf("image %s", image)
	}
	remove(t, s, p)
}

// A package without install.yaml only defines resources, and an update to one with a controller starts it.
func TestFirstGenerationWithoutAControllerIsHealthy(t *testing.T) {
	s, _, r := newDeploymentEnv(t)
	without, _ := publish.FirstGeneration(t, r.address, "first/data", "v1", firstFiles("firstdata", ""))
	with, digest := publish.FirstGeneration(t, r.address, "first/data", "v2", firstFiles("firstdata", firstDeployment("")))
	again, _ := publish.FirstGeneration(t, r.address, "first/data", "v3", firstFiles("firstdata", ""))
	p := env.NewProvider("firstdata", without)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	if n := len(deployments(t, s, p)); n != 0 {
		t.Errorf("%d Deployments", n)
	}
	upgradeTo(t, s, p, with)
	untilRuns(t, s, p, digest.String())
	upgradeTo(t, s, p, again)
	eventually(t, "the controller is stopped", func() bool { return len(deployments(t, s, p)) == 0 })
	remove(t, s, p)
}

// The version that a package states is its tag.
//
// hardening: M8
func TestFirstGenerationWithAnotherTagIsRefused(t *testing.T) {
	s, _, r := newDeploymentEnv(t)
	files := firstFiles("firsttag", "")
	files["app.yaml"] = append(files["app.yaml"], []byte("version: 0.1.0\n")...)
	ref, _ := publish.FirstGeneration(t, r.address, "first/tag", "0.2.0", files)
	p := env.NewProvider("firsttag", ref)
	s.CreateTemporary(t, p)
	s.WaitPackage(t, p, "is refused", func() bool {
		return strings.Contains(p.GetCondition(v1.TypeReady).Message+p.GetCondition(v1.TypeHealthy).Message+
			p.GetCondition(v1.TypeInstalled).Message, firstgen.ErrVersionMismatch.Name)
	})
	if n := len(deployments(t, s, p)); n != 0 {
		t.Errorf("%d Deployments", n)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "mytypes.firsttag.example.org"}, crd); err == nil {
		t.Error("the CRD was created")
	}
	remove(t, s, p)
}
