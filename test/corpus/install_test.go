// Package corpus_test builds, pushes, pulls and installs real packages on a real API server, until every
// kind is established.
package corpus_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// spread lists the packages. They are installed one after the other, and removed.
var spread = []struct{ dir, why string }{
	{"providers/negz__provider-nop@v0.1.0", "metadata v1alpha1"},
	{"providers/crossplane-contrib__provider-nop@v0.4.0", "a webhook configuration"},
	{"providers/crossplane-contrib__provider-in-cluster@v0.1.1", "definitions of the version v1beta1"},
	{"providers/crossplane-contrib__provider-github@e5c2c119cf", "definitions of the version v1beta1"},
	{"providers/crossplane-contrib__provider-kubernetes@v1.2.1", "conversion webhooks"},
	{"providers/crossplane-contrib__provider-argocd@v0.14.3", "a definition of 2.7 MB"},
	{"providers/crossplane-contrib__provider-keycloak@v3.0.0", "223 definitions"},
	{"configurations/upbound__configuration-aws-network@v0.1.0", "a Configuration"},
	{"configurations/upbound__platform-ref-aws@v0.0.5", "an early Configuration"},
	{"configurations/hasheddan__my-org@46b81884c3", "an early Configuration"},
	{"configurations/Smana__crossplane-configuration@v0.1.0", "XRDs of the version v2"},
	{"functions/crossplane-contrib__function-patch-and-transform@v0.2.0", "Function metadata v1beta1"},
	{"functions/crossplane-contrib__function-go-templating@v0.12.2", "Function metadata v1"},
}

// limit is the longest time that a condition may take on a busy machine.
const limit = 3 * time.Minute

func TestInstallCorpus(t *testing.T) {
	dir := corpus.Dir(t)
	pusher := remote.New(remote.Options{})
	t.Cleanup(pusher.Close)
	e := env.New(t)
	e.RunManager(t, env.OpenContent(t, t.TempDir(), fetch.Options{}).Options())
	for i, tc := range spread {
		if !lane.IsFull() && i%4 != 0 {
			continue
		}
		t.Run(filepath.Base(tc.dir), func(t *testing.T) {
			t.Log(tc.why)
			pkg, ref := publishFolder(t, pusher, e.Registry, filepath.Join(dir, tc.dir))
			install(t, e.Client, pkg, ref)
		})
	}
}

// publishFolder builds a package and pushes it.
func publishFolder(t *testing.T, pusher *remote.Client, registry, item string) (*xpkg.Package, oci.Reference) {
	t.Helper()
	folder, err := xpkg.ReadFolder(os.DirFS(packageRoot(t, item)), xpkg.FolderOptions{ExamplesRoot: "examples", Ignore: []string{"kustomize/*"}})
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := folder.Package(xpkg.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	image, err := image.Build(t.Context(), image.Input{PackageYAML: folder.Stream()})
	if err != nil {
		t.Fatal(err)
	}
	name := strings.ToLower(strings.NewReplacer("@", "-", "__", "-").Replace(filepath.Base(item)))
	ref, err := oci.ParseReference(registry+"/corpus/"+name+":v1.0.0", oci.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pusher.Push(t.Context(), ref, image); err != nil {
		t.Fatal(err)
	}
	return pkg, ref
}

// packageRoot returns the directory with crossplane.yaml.
func packageRoot(t *testing.T, item string) string {
	t.Helper()
	root := ""
	err := filepath.WalkDir(item, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "crossplane.yaml" && root == "" {
			root = filepath.Dir(path)
		}
		return err
	})
	if err != nil || root == "" {
		t.Fatalf("no crossplane.yaml in %s (%v)", item, err)
	}
	return root
}

// install installs a package, checks that every CRD is established, and removes it.
func install(t *testing.T, c client.Client, pkg *xpkg.Package, ref oci.Reference) {
	t.Helper()
	p := v1.NewPackage(string(pkg.Meta.Kind))
	p.SetName(oci.ToDNSLabel(ref.Repository))
	p.PackageSpec().Package = ref.String()
	p.PackageSpec().SkipDependencyResolution = true
	started := time.Now()
	if err := c.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, limit, "the package is healthy", func() (string, bool) {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		h := p.GetCondition(v1.TypeHealthy)
		if strings.HasPrefix(h.Message, "ObjectRejected") {
			t.Fatal(h.Message)
		}
		return h.Message, h.Status == corev1.ConditionTrue
	})
	t.Logf("%d objects, healthy after %s", len(pkg.Objects), time.Since(started).Round(time.Millisecond))
	var crds []string
	for _, o := range pkg.Objects {
		if o.GVK.Kind == "CustomResourceDefinition" && pkg.Meta.Kind != xpkg.Function {
			crds = append(crds, o.Name)
		}
	}
	for _, name := range crds {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, crd); err != nil {
			t.Fatal(err)
		}
		if !established(crd) {
			t.Errorf("the package is healthy, and %s is not established", name)
		}
	}
	remove(t, c, p, crds)
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, cond := range crd.Status.Conditions {
		if cond.Type == apiextensionsv1.Established {
			return cond.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

func remove(t *testing.T, c client.Client, p v1.Package, crds []string) {
	t.Helper()
	if err := c.Delete(t.Context(), p, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	mine := map[string]bool{}
	for _, name := range crds {
		mine[name] = true
	}
	wait.Until(t, limit, "all CRDs of the package are deleted", func() (string, bool) {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
		if err := c.List(t.Context(), &list); err != nil {
			return err.Error(), false
		}
		var left []string
		for _, o := range list.Items {
			if mine[o.Name] {
				left = append(
					left,
					fmt.Sprintf("%s deleted %v finalizers %v owners %v", o.Name, o.DeletionTimestamp, o.Finalizers, o.OwnerReferences),
				)
			}
		}
		return strings.Join(left, "\n"), len(left) == 0
	})
}
