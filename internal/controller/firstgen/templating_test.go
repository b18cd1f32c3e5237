package firstgen

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller/kube"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

var update = flag.Bool("update", false, "write the golden files anew")

// templatesDigest is the digest of the templates of packages that name another image.
var templatesDigest = oci.DigestOf([]byte("templates"))

// readTree returns the content of a package of the corpus as a Provider has it.
func readTree(t *testing.T, tree string) content {
	t.Helper()
	pkg, _ := publish.ReadFirstGeneration(t, tree)
	c, err := firstgen.Convert(pkg, firstgen.ConvertOptions{})
	if err != nil {
		t.Fatal(err)
	}
	read, err := xpkg.Read(c.Stream(), xpkg.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return content{
		pkg: read, origin: oci.MustParseReference("r.example.org/acme/wordpress:v1"), digest: oci.DigestOf([]byte(tree)),
	}
}

// newBase returns a Base with objects. A StackDefinition records the digest of the templates of every image.
func newBase(t *testing.T, objects ...client.Object) *Base {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(
		v1.AddToScheme(scheme), v1beta1.AddToScheme(scheme), corev1.AddToScheme(scheme), rbacv1.AddToScheme(scheme),
		packagesv1alpha1.AddToScheme(scheme),
	); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return &Base{API: kube.API{Client: api, Live: api}, Namespace: "crossplane-system"}
}

// recordedDefinition returns a StackDefinition that records the digest of the templates of a package.
func recordedDefinition(t *testing.T, c content) *packagesv1alpha1.StackDefinition {
	t.Helper()
	templating, err := firstgen.ParseTemplating(c.pkg.Meta.Annotations)
	if err != nil {
		t.Fatal(err)
	}
	d := &packagesv1alpha1.StackDefinition{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "mine", Annotations: map[string]string{
			state.AnnotationInstalledBy: state.InstalledBy(newInstall(packagesv1alpha1.PackageInstallKind)),
		},
	}}
	if image := templating.Source.Image; image != "" {
		d.Spec.Behavior.Source.Image = oci.MustParseReference("r.example.org/" + image).WithDigest(templatesDigest).String()
	}
	return d
}

// Each published package with templates gets a StackDefinition in both groups, and a record that runs its controller
// with permissions that a namespace may have.
func TestPublishedPackagesWithTemplatesAreRecorded(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus.Dir(t), "legacy-v1", "*", ".registry", "behavior.yaml"))
	if err != nil || len(files) != 23 {
		t.Fatalf("the corpus has %d packages with templates, want 23 (%v)", len(files), err)
	}
	for _, file := range files {
		tree := filepath.Dir(filepath.Dir(file))
		t.Run(filepath.Base(tree), func(t *testing.T) {
			c := readTree(t, tree)
			b := newBase(t, recordedDefinition(t, c))
			in := newInstall(packagesv1alpha1.PackageInstallKind)
			record, err := b.ensureContent(t.Context(), in, c)
			if err != nil {
				t.Fatal(err)
			}
			if !isTemplating(record) || len(record.OwnerReferences) != 2 {
				t.Errorf("the owners are %+v", record.OwnerReferences)
			}
			required, err := (&Packages{}).required(t.Context(), record)
			if err != nil {
				t.Fatal(err)
			}
			rules, err := rulesOf(record, nil, required)
			// With the definitions of workloads, a user of a namespace would run programs with the permissions of KubeVela.
			if isRefused := filepath.Base(tree) == "crossplane__stack-oam@2020-04-20-640d8da0"; errors.Is(
				err, ErrPermissions,
			) != isRefused {
				t.Errorf("the permissions are refused: %v, want %t", err, isRefused)
			}
			for _, group := range definitionGroups() {
				d := newDefinition(in, group)
				if err := b.API.Live.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil || !controls(in, d) {
					t.Errorf("the StackDefinition of %s has the owners %v (%v)", group, d.GetOwnerReferences(), err)
				}
			}
			if name := filepath.Base(tree); name == "crossplane__app-wordpress@v0.5.0-c2ffdf35" ||
				name == "crossplane__app-wordpress@v0.1.0-3d7974ff" {
				golden(t, name, b, in, map[string]any{"rules": rules, "dependsOn": record.Spec.DependsOn})
			}
		})
	}
}

// golden compares the behavior and the controller of a StackDefinition, and more, with a golden file. It omits the text
// of authors.
func golden(t *testing.T, name string, b *Base, in packagesv1alpha1.Install, more map[string]any) {
	t.Helper()
	d, err := b.definition(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	more["behavior"], more["controller"] = d.Spec.Behavior, d.Spec.Controller
	got, err := yaml.Marshal(more)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "templating", strings.ReplaceAll(name, "@", "-")+".yaml")
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, got, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func newInstall(kind string) packagesv1alpha1.Install {
	in := packagesv1alpha1.NewInstall(kind)
	in.SetNamespace("team")
	in.SetName("mine")
	in.SetUID("u")
	return in
}

// withTemplates returns the content of a package with templates.
func withTemplates(t *testing.T, behavior string) content {
	t.Helper()
	meta := xpkg.Meta{Annotations: map[string]string{
		xpkg.AnnotationTemplating: behavior, "meta.xpkg.dev/default-runtime": `{"none":true}`,
	}}
	return content{
		pkg: &xpkg.Package{Meta: meta}, origin: oci.MustParseReference("r.example.org/acme/stack:v1"),
		digest: oci.DigestOf([]byte("stack")),
	}
}

// The images that name no registry come from the source of the install object, and its pull settings apply to all
// containers.
func TestTemplatingControllerTakesTheSettingsOfTheInstallObject(t *testing.T) {
	const behavior = `{"source":{"path":"/chart"},"crd":{"kind":"Thing","apiVersion":"a.example.org/v1"},"engine":{"type":"helm3"IMAGE}}`
	for name, tc := range map[string]struct{ source, image, option, want string }{
		"default":              {want: "r.example.org/crossplane/templating-controller:v0.4.0"},
		"image of the package": {image: "acme/engine:v1", want: "r.example.org/acme/engine:v1"},
		"image of the manager": {option: "mirror.example.org/engine:v2", want: "mirror.example.org/engine:v2"},
		"source": {
			source: "private.example.org", want: "private.example.org/crossplane/templating-controller:v0.4.0",
		},
		"source with a path": {
			source: "private.example.org/mirror/", image: "acme/engine:v1", want: "private.example.org/mirror/acme/engine:v1",
		},
		"image with a registry": {
			source: "private.example.org", image: "quay.io/acme/engine:v1", want: "quay.io/acme/engine:v1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			image := ""
			if tc.image != "" {
				image = `,"controllerImage":"` + tc.image + `"`
			}
			c := withTemplates(t, strings.Replace(behavior, "IMAGE", image, 1))
			b := newBase(t)
			b.Options.TemplatingImage = tc.option
			in := newInstall(packagesv1alpha1.PackageInstallKind)
			in.InstallSpec().Source, in.InstallSpec().ImagePullPolicy = tc.source, corev1.PullAlways
			in.InstallSpec().ImagePullSecrets = []packagesv1alpha1.SecretReference{{Name: "credentials"}}
			record, err := b.ensureContent(t.Context(), in, c)
			if err != nil {
				t.Fatal(err)
			}
			config, controller, err := configOf(record)
			if err != nil || controller != tc.want {
				t.Fatalf("the controller has the image %s (%v), want %s", controller, err, tc.want)
			}
			pod := config.Spec.DeploymentTemplate.Spec.Template.Spec
			init := pod.InitContainers[0]
			if init.Image != c.origin.WithDigest(c.digest).String() || init.Command[2] != "/chart/." {
				t.Errorf("the init container is %+v", init)
			}
			if init.ImagePullPolicy != corev1.PullAlways || pod.Containers[0].ImagePullPolicy != corev1.PullAlways ||
				len(pod.ImagePullSecrets) != 1 {
				t.Errorf("the pod is %+v", pod)
			}
		})
	}
}

// A version without templates deletes the StackDefinitions of the former version.
func TestVersionWithoutTemplatesDeletesTheStackDefinitions(t *testing.T) {
	c := withTemplates(
		t, `{"source":{"path":"chart"},"crd":{"kind":"Thing","apiVersion":"a.example.org/v1"},"engine":{"type":"helm3"}}`,
	)
	b, in := newBase(t), newInstall(packagesv1alpha1.ClusterPackageInstallKind)
	if _, err := b.ensureContent(t.Context(), in, c); err != nil {
		t.Fatal(err)
	}
	delete(c.pkg.Meta.Annotations, xpkg.AnnotationTemplating)
	record, err := b.ensureContent(t.Context(), in, c)
	if err != nil || isTemplating(record) || record.Spec.Controller.Deployment != nil {
		t.Errorf("the record is %+v (%v)", record, err)
	}
	for _, group := range definitionGroups() {
		d := newDefinition(in, group)
		if err := b.API.Live.Get(t.Context(), client.ObjectKeyFromObject(d), d); client.IgnoreNotFound(err) != nil ||
			err == nil {
			t.Errorf("the StackDefinition of %s exists (%v)", group, err)
		}
	}
}

// A StackDefinition of a user or of another object is neither changed nor deleted, and is found before anything is
// installed unless a former package manager may own it. One of the install object is restored also without its owners,
// as a backup restores it.
func TestStackDefinitionOfAnotherObjectIsKept(t *testing.T) {
	c := withTemplates(
		t, `{"source":{"path":"chart"},"crd":{"kind":"Thing","apiVersion":"a.example.org/v1"},"engine":{"type":"helm3"}}`,
	)
	in := newInstall(packagesv1alpha1.PackageInstallKind)
	owned := func(apiVersion, kind, name string, controls bool) metav1.ObjectMeta {
		return metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{
			APIVersion: apiVersion, Kind: kind, Name: name, UID: "o", Controller: new(controls),
		}}}
	}
	for name, tt := range map[string]struct {
		meta metav1.ObjectMeta
		// early means that the conflict is found before the installation.
		own, early bool
	}{
		"of a user":           {early: true},
		"of another object":   {meta: owned("example.org/v1", "Other", "other", true)},
		"of a former manager": {meta: owned("stacks.crossplane.io/v1alpha1", "StackInstall", "mine", true)},
		"owned by something":  {meta: owned("v1", "ConfigMap", "mine", false)},
		"of another install": {
			meta:  metav1.ObjectMeta{Annotations: map[string]string{state.AnnotationInstalledBy: "PackageInstall/team/other"}},
			early: true,
		},
		"restored from backup": {
			meta: metav1.ObjectMeta{Annotations: map[string]string{state.AnnotationInstalledBy: state.InstalledBy(in)}},
			own:  true,
		},
		"annotated and foreign": {meta: withAnnotation(
			owned("example.org/v1", "Other", "other", true), state.AnnotationInstalledBy, state.InstalledBy(in),
		)},
		"without the control": {
			meta: owned(packagesv1alpha1.GroupVersion.String(), packagesv1alpha1.PackageInstallKind, "mine", false), own: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := &packagesv1alpha1.StackDefinition{ObjectMeta: *tt.meta.DeepCopy()}
			live.Namespace, live.Name = in.GetNamespace(), in.GetName()
			live.Spec.Title = "of a user"
			b := newBase(t, live)
			if err := b.checkRecord(t.Context(), in); errors.Is(err, ErrRecordExists) != tt.early {
				t.Errorf("before the installation: %v", err)
			}
			_, err := b.ensureContent(t.Context(), in, c)
			if errors.Is(err, ErrRecordExists) == tt.own || tt.own && err != nil {
				t.Errorf("error %v", err)
			}
			if err := b.deleteRecord(t.Context(), in); err != nil {
				t.Error(err)
			}
			err = b.API.Live.Get(t.Context(), client.ObjectKeyFromObject(live), live)
			if tt.own != apierrors.IsNotFound(err) || !tt.own && live.Spec.Title != "of a user" {
				t.Errorf("after the deletion of the install object, the StackDefinition is %+v (%v)", live, err)
			}
		})
	}
}

func withAnnotation(m metav1.ObjectMeta, key, value string) metav1.ObjectMeta {
	m.Annotations = map[string]string{key: value}
	return m
}
