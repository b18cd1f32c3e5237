package corpus_test

import (
	"cmp"
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gocmp "github.com/google/go-cmp/cmp"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

var update = flag.Bool("update", false, "write the golden files anew")

// firstSpread are packages of the first generation with golden files: the newest one of each repository.
var firstSpread = []string{
	"crossplane-contrib__provider-alibaba@v0.3.0-rc-d6fc4668",
	"crossplane-contrib__provider-azure@v0.9.0-rc-0be88bde",
	"crossplane-contrib__provider-gcp@v0.9.0-rc-eb29953d",
	"crossplane-contrib__provider-github@2020-03-05-4c68aa07",
	"crossplane-contrib__provider-helm@v0.2.0-1bfc2f32",
	"crossplane__app-wordpress@v0.5.0-c2ffdf35",
	"crossplane__provider-template@2020-10-02-ab91b689",
	"crossplane__sample-stack@2020-08-07-cb3f236a",
	"negz__provider-nop@2020-07-06-6758caf6",
	"upbound__provider-existing-cluster@v0.1.1-800d03ac",
}

// firstRefused are the packages that are not valid; a test of pkg/firstgen checks their reasons.
var firstRefused = []string{
	"crossplane-contrib__provider-helm@v0.1.0-5f9173c0", "negz__provider-nop@2020-07-02-47745f2c",
	"negz__provider-nop@2020-07-02-f05544e1",
}

// firstPackages returns the packages to install: the ones with golden files or, in the full lane, all valid ones.
func firstPackages(t *testing.T, root string) []string {
	t.Helper()
	if !lane.IsFull() {
		return firstSpread
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		if !slices.Contains(firstRefused, e.Name()) {
			all = append(all, e.Name())
		}
	}
	return all
}

// Each package is built, pushed and installed from its image of the first generation, and then from its converted
// image: with the objects that the document describes, and the same CRDs both times.
func TestInstallFirstGeneration(t *testing.T) {
	lane.Full(t, "test/corpus.TestInstallCorpus", "pkg/firstgen.TestPublishedPackagesNeedConsentForAKnownReason")
	if testing.Short() {
		t.Skip("installs 10 packages twice: skipped with -short")
	}
	root := filepath.Join(corpus.Dir(t), "legacy-v1")
	e := env.New(t)
	e.StartKubelet(t, controller.DefaultNamespace)
	o := env.OpenContent(t, t.TempDir(), fetch.Options{}).Options()
	o.Runtimes, o.Settle, o.Permissions = runtime.Everywhere(runtime.Deployment), time.Millisecond,
		&controller.Permissions{}
	e.RunManager(t, o)
	// Some packages name an image of the registry of a developer.
	config := &v1beta1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: "developer"}}
	config.Spec.MatchImages = []v1beta1.ImageMatch{{Prefix: "localhost:5000"}}
	config.Spec.RewriteImage = &v1beta1.ImageRewrite{Prefix: e.Registry}
	e.Create(t, config)
	for _, name := range firstPackages(t, root) {
		t.Run(name, func(t *testing.T) {
			started := time.Now()
			pkg, files := publish.ReadFirstGeneration(t, filepath.Join(root, name))
			c, err := firstgen.Convert(pkg, firstgen.ConvertOptions{})
			if err != nil {
				t.Fatal(err)
			}
			pushController(t, e.Registry, c.Image)
			repository, tag := "first/"+dnsName(name), cmp.Or(pkg.App.Version, "v1.0.0")
			ref, _ := publish.FirstGeneration(t, e.Registry, repository, tag, files)
			original := installFirst(t, e, pkg, ref, c.Runtime.None)
			if slices.Contains(firstSpread, name) {
				goldenObjects(t, name, original)
			}
			converted := publish.Stream(t, e.Registry, repository+"-converted", tag, c.Stream()).String()
			again := installFirst(t, e, pkg, converted, c.Runtime.None)
			if diff := gocmp.Diff(original.CRDs, again.CRDs); diff != "" {
				t.Errorf("the converted package has other CRDs: %s", diff)
			}
			t.Logf(
				"installed twice after %s, %d parts without an equivalent", time.Since(started).Round(time.Millisecond),
				len(c.Losses),
			)
		})
	}
}

// pushController pushes an image with the name that install.yaml states, if it states one.
func pushController(t *testing.T, registry, image string) {
	t.Helper()
	if image == "" {
		return
	}
	ref, err := oci.ParseReference(image, oci.ParseOptions{DefaultRegistry: registry, AllowUntagged: true})
	if err != nil {
		t.Fatal(err)
	}
	if ref.Tag == "" {
		ref = ref.WithTag("latest")
	}
	publish.Stream(
		t, registry, ref.Repository, ref.Tag,
		[]byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: controller}\n"),
	)
}

func dnsName(name string) string {
	return strings.ToLower(strings.NewReplacer("@", "-", "__", "-", "_", "-").Replace(name))
}

// firstObjects are the objects of an installed package, without the text of annotations, which belongs to the authors.
type firstObjects struct {
	CRDs        []firstCRD          `json:"crds"`
	Permissions []rbacv1.PolicyRule `json:"permissions,omitempty"`
	Deployment  *firstDeployment    `json:"deployment,omitempty"`
}

type firstCRD struct {
	Name     string            `json:"name"`
	Kind     string            `json:"kind"`
	Scope    string            `json:"scope"`
	Versions []string          `json:"versions"`
	Labels   map[string]string `json:"labels"`
	// Annotations have the length and the start of the hash of each value.
	Annotations map[string]string `json:"annotations"`
}

type firstDeployment struct {
	Replicas int32             `json:"replicas"`
	Labels   map[string]string `json:"labels"`
	Image    string            `json:"image"`
	Args     []string          `json:"args,omitempty"`
	Env      []string          `json:"env"`
}

// installFirst installs a package, returns its objects, and removes it. A package without a runtime (none) has no
// Deployment and no role for it.
func installFirst(t *testing.T, e *env.Env, pkg *firstgen.Package, ref string, none bool) firstObjects {
	t.Helper()
	p := env.NewProvider(oci.FriendlyID(dnsName(pkg.App.Title), fmt.Sprintf("%x", sha256.Sum256([]byte(ref)))), ref)
	p.Spec.SkipDependencyResolution = true
	e.Create(t, p)
	wait.Until(t, limit, p.Name+" is healthy", func() (string, bool) {
		if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		h := p.GetCondition(v1.TypeHealthy)
		if strings.HasPrefix(h.Message, "PermissionEscalation") {
			approve(t, e, p, h.Message)
		}
		for _, fatal := range []string{"ObjectRejected", "Invalid"} {
			if strings.HasPrefix(h.Message, fatal) {
				t.Fatal(h.Message)
			}
		}
		return h.Message, h.Status == corev1.ConditionTrue
	})
	revision := p.Status.CurrentRevision
	var out firstObjects
	var names []string
	for _, r := range pkg.Resources {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := e.Client.Get(t.Context(), client.ObjectKey{Name: r.CRD.Name}, crd); err != nil {
			t.Fatal(err)
		}
		if !established(crd) {
			t.Errorf("the package is healthy, and %s is not established", crd.Name)
		}
		names = append(names, crd.Name)
		out.CRDs = append(out.CRDs, summarizeCRD(crd))
	}
	role := &rbacv1.ClusterRole{}
	err := e.Client.Get(t.Context(), client.ObjectKey{Name: "crossplane:provider:" + revision + ":system"}, role)
	if (err != nil) != none {
		t.Errorf("role of the runtime: %v", err)
	}
	out.Permissions = role.Rules
	deployment := &appsv1.Deployment{}
	err = e.Client.Get(t.Context(), client.ObjectKey{Namespace: controller.DefaultNamespace, Name: revision}, deployment)
	if (err != nil) != none {
		t.Errorf("Deployment: %v", err)
	}
	if err == nil {
		out.Deployment = summarizeDeployment(deployment, e.Registry)
	}
	remove(t, e.Client, p, names)
	return out
}

// approve approves the permissions that a package requests, as its user would do: provider-helm may change every object
// of a group that provider-kubernetes has today.
func approve(t *testing.T, e *env.Env, p *v1.Provider, message string) {
	t.Helper()
	digest := regexp.MustCompile("sha256:[0-9a-f]{64}").FindString(message)
	patch := client.RawPatch(
		types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"xpkg.dev/approved-permissions":%q}}}`, digest),
	)
	rev := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: p.Status.CurrentRevision}}
	if err := e.Client.Patch(t.Context(), rev, patch); err != nil {
		t.Fatal(err)
	}
}

func summarizeCRD(crd *apiextensionsv1.CustomResourceDefinition) firstCRD {
	out := firstCRD{
		Name: crd.Name, Kind: crd.Spec.Names.Kind, Scope: string(crd.Spec.Scope), Labels: crd.Labels,
		Annotations: map[string]string{},
	}
	for _, v := range crd.Spec.Versions {
		out.Versions = append(out.Versions, v.Name)
	}
	for key, value := range crd.Annotations {
		if !strings.HasPrefix(key, "xpkg.dev/") {
			out.Annotations[key] = fmt.Sprintf("%d bytes, %x", len(value), sha256.Sum256([]byte(value)))[:26]
		}
	}
	return out
}

func summarizeDeployment(d *appsv1.Deployment, registry string) *firstDeployment {
	c := d.Spec.Template.Spec.Containers[0]
	image, _, _ := strings.Cut(strings.ReplaceAll(c.Image, registry, "REGISTRY"), "@")
	out := &firstDeployment{Replicas: *d.Spec.Replicas, Image: image, Args: c.Args, Labels: maps.Clone(d.Labels)}
	for _, e := range c.Env {
		if e.Name != "REVISION_UID" {
			out.Env = append(out.Env, e.Name)
		}
	}
	return out
}

// goldenObjects compares objects with a golden file.
func goldenObjects(t *testing.T, name string, objects firstObjects) {
	t.Helper()
	got, err := yaml.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "firstgeneration", dnsName(name)+".yaml")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
