package crds

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
)

// firstGenerationDifferences are the deliberate differences from the CRDs of Crossplane v0.12.
var firstGenerationDifferences = []difference{
	{
		"v0.12.0", "packages|stackdefinitions", "removed", "v1alpha1 .spec.controller.deployment.spec.*",
		"a Deployment is accepted as it is, so that an invalid one affects only its own Package",
	},
	{
		"v0.12.0", "packages|stackdefinitions", "changed", "v1alpha1 .spec.controller.deployment.spec",
		"as above: unknown fields are kept",
	},
	{
		"v0.12.0", "packages|stackdefinitions", "changed", "v1alpha1 .spec.permissions.rules[].*",
		"Kubernetes declares these lists as atomic",
	},
	{
		"v0.12.0", "*", "changed", "v1alpha1 .status.conditionedStatus.conditions",
		"a map by type, so that other clients can apply single conditions",
	},
	{
		"v0.12.0", "*", "added", "v1alpha1 .status.conditionedStatus.conditions[].observedGeneration",
		"read by kstatus, and so by every GitOps tool",
	},
	{
		"v0.12.0", "*", "added", "v1alpha1 .status.observedGeneration",
		"as above",
	},
	{
		"v0.12.0", "clusterpackageinstalls|packageinstalls", "added",
		"v1alpha1 .status.provider|v1alpha1 .status.chosenPackage*",
		"the Provider that has the CRDs of the package, and the choice for spec.crd",
	},
	{
		"v0.12.0", "packages|stackdefinitions", "added", "v1alpha1 .spec.serviceAccount*",
		"the annotations of the ServiceAccount where the document has them; Crossplane v0.12 has them in spec.controller",
	},
	{
		"v0.12.0", "packages", "added", "v1alpha1 .status.runtimeImage",
		"the image of the program, with its resolved digest",
	},
	{
		"v0.12.0", "stackdefinitions", "changed", "v1alpha1 .spec.behavior.engine.kustomize.kustomization",
		"Crossplane v0.12 drops the fields of a kustomization",
	},
}

// TestFirstGenerationIsCompatible proves that the CRDs of the first generation contain every statement of the CRDs of
// Crossplane v0.12, except for the listed differences, and that each listed difference exists.
func TestFirstGenerationIsCompatible(t *testing.T) {
	mine := ours(t, FirstGeneration)
	used := make([]bool, len(firstGenerationDifferences))
	for name, theirs := range upstreamFirstGeneration(t) {
		if mine[name] == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		a, b := flatten(t, theirs), flatten(t, mine[name])
		for _, at := range places(a, b) {
			if how := change(a, b, at); a[at] != b[at] && !isListed(firstGenerationDifferences, used, "v0.12.0", name, how, at) {
				t.Errorf("%s: %s %q\n  upstream: %s\n      ours: %s", name, how, at, a[at], b[at])
			}
		}
	}
	for i, d := range firstGenerationDifferences {
		if !used[i] {
			t.Errorf("this difference does not exist: %+v", d)
		}
	}
}

// upstreamFirstGeneration returns the CRDs of Crossplane v0.12 by name, converted to v1.
func upstreamFirstGeneration(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(
		corpus.Dir(t), "core-crds", "crossplane__crossplane@v0.12.0", "cluster", "charts", "crossplane-types", "crds",
		"packages.*.yaml",
	))
	if err != nil || len(files) == 0 {
		t.Fatalf("the corpus has no CRDs of Crossplane v0.12: %v", err)
	}
	s := runtime.NewScheme()
	install.Install(s)
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		beta, hub, crd := &apiextensionsv1beta1.CustomResourceDefinition{}, &apiextensions.CustomResourceDefinition{},
			&apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(b, beta); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s.Default(beta)
		if err := s.Convert(beta, hub, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Convert(hub, crd, nil); err != nil {
			t.Fatal(err)
		}
		out[crd.Name] = crd
	}
	return out
}

// TestPackagesOfTheFirstGenerationAreAccepted submits the objects of the document to the schemas.
func TestPackagesOfTheFirstGenerationAreAccepted(t *testing.T) {
	mine := ours(t, FirstGeneration)
	for name, doc := range map[string]string{
		"clusterpackageinstalls.packages.crossplane.io": "spec: {source: registry.crossplane.io, package: 'crossplane/provider-gcp:v0.1.0'}",
		"packageinstalls.packages.crossplane.io": `
spec:
  source: private.registry.example.com
  package: private-user/image
  imagePullSecrets: [{name: private-registry-secret}]
  imagePullPolicy: Always
  serviceAccount: {annotations: {iam-service-annotation: special-value}}`,
		"packages.packages.crossplane.io": `
spec:
  customresourcedefinitions: [{kind: RedisCluster, apiVersion: crossplane.redislabs.com/v1alpha1}]
  dependsOn: []
  title: Redis package for Crossplane
  icons: [{base64Data: iVBORw0KGgo=, mediatype: image/png}]
  maintainers: [{name: Rick Kane, email: rick@foo.io}]
  controller:
    deployment:
      name: redis-controller
      spec:
        replicas: 1
        selector: {matchLabels: {core.crossplane.io/name: redis}}
        template:
          metadata: {name: redis-controller, labels: {core.crossplane.io/name: redis}}
          spec:
            serviceAccountName: redis-controller
            containers: [{name: redis-controller, image: 'redis/redis-crossplane-controller:2.0.9', env: null}]`,
	} {
		t.Run(name, func(t *testing.T) {
			if errs := submit(t, mine[name], "v1alpha1", parse(t, doc)); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
		})
	}
}
