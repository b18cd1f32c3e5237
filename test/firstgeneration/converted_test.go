package firstgeneration

import (
	"cmp"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/testing/command"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/scratch"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
)

// Published packages are converted with `xpkg convert`, pushed with `xpkg push` and installed: one with the runtime in
// its image, one whose controller has an image of its own, and one with templates.
func TestPublishedPackagesAreConvertedAndInstalled(t *testing.T) {
	lane.Full(
		t, "test/firstgeneration.TestClusterPackageInstallMaintainsItsProviderAndRecord",
		"test/firstgeneration.TestPackageInstallNeedsSharedDefinitions",
	)
	s := newSuite(t, nil)
	root := filepath.Join(corpus.Dir(t), "legacy-v1")
	for name, tc := range map[string]struct {
		tree string
		// embedded puts the runtime into the image of the package.
		embedded bool
		// controller is the reference of the image of the controller, without the registry; empty for none.
		controller string
	}{
		"embedded":  {tree: "crossplane__provider-template@2020-10-02-ab91b689", embedded: true},
		"separate":  {tree: "crossplane__sample-stack@2020-08-07-cb3f236a", controller: "crossplane/sample-stack:latest"},
		"templates": {tree: "crossplane__app-wordpress@v0.5.0-c2ffdf35"},
	} {
		t.Run(name, func(t *testing.T) {
			tree, file := filepath.Join(root, tc.tree), filepath.Join(t.TempDir(), "converted.xpkg")
			pkg, _ := publish.ReadFirstGeneration(t, tree)
			// The conversion keeps the version, which must be the tag.
			version := cmp.Or(pkg.App.Version, "v1.0.0")
			source, image := tree, ""
			if tc.embedded {
				source = s.pushWithRuntime(t, tree, "published/"+name+":"+version)
			}
			if tc.controller != "" {
				repository, tag, _ := strings.Cut(tc.controller, ":")
				image = s.Push(t, repository, tag, content("controller", tag, "Cluster"))
			}
			command.Run(t, "convert", source, "-o", file)
			ref := s.Registry + "/converted/" + name + ":" + version
			command.Run(t, "push", "-f", file, ref)
			if tc.embedded {
				image = ref
			}

			p := env.NewProvider("converted-"+name, ref)
			p.Spec.SkipDependencyResolution = true
			s.CreateTemporary(t, p)
			s.WaitReady(t, p)
			for _, r := range pkg.Resources {
				if labels := s.definitionLabels(t, r.CRD.Name); labels[firstgen.LabelManagedBy] != firstgen.ManagedBy {
					t.Errorf("the CRD %s has the labels %v", r.CRD.Name, labels)
				}
			}
			deployments := &appsv1.DeploymentList{}
			if err := s.Client.List(t.Context(), deployments, client.InNamespace(managerNamespace)); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, d := range deployments.Items {
				if d.Name == p.Status.CurrentRevision {
					got, _, _ = strings.Cut(d.Spec.Template.Spec.Containers[0].Image, "@")
				}
			}
			if got != image {
				t.Errorf("the runtime has the image %q, want %q", got, image)
			}
		})
	}
}

// pushWithRuntime builds a package of the first generation whose image contains its program, and pushes it.
func (s *suite) pushWithRuntime(t *testing.T, tree, name string) string {
	t.Helper()
	program, file := filepath.Join(t.TempDir(), "program.tar"), filepath.Join(t.TempDir(), "first.xpkg")
	image, err := scratch.Image("program", []byte("program"))
	if err != nil {
		t.Fatal(err)
	}
	if err := scratch.Save(program, "program", image); err != nil {
		t.Fatal(err)
	}
	ref := s.Registry + "/" + name
	command.Run(t, "build", tree, "--embed-runtime-image-tarball", program, "-o", file)
	command.Run(t, "push", "-f", file, ref)
	return ref
}

// definitionLabels returns the labels of a CRD.
func (s *suite) definitionLabels(t *testing.T, name string) map[string]string {
	t.Helper()
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(definitionKind)
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: name}, crd); err != nil {
		t.Fatal(err)
	}
	return crd.Labels
}
