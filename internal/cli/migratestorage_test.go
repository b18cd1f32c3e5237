package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// formerVersions creates a CRD of a package with one custom resource that is stored in a former version.
func (b bench) formerVersions(t *testing.T, owner *v1.Provider, plural string) string {
	t.Helper()
	const group = "migrated.test"
	version := func(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: storage,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: v1.GroupVersion.String(), Kind: v1.ProviderKind, Name: owner.Name, UID: owner.UID},
		}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Kind: "Kind" + plural, Plural: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1alpha1", true), version("v1", false)},
		},
	}
	if err := b.client.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, env.Limit, plural+" can be created", func() (string, bool) {
		err := b.client.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1", "kind": "Kind" + plural, "metadata": map[string]any{"name": "one"},
		}})
		return fmt.Sprint(err), err == nil
	})
	wait.Until(t, env.Limit, "the storage version is moved", func() (string, bool) {
		if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
			return err.Error(), false
		}
		crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage = false, true
		err := b.client.Update(t.Context(), crd)
		return fmt.Sprint(err), err == nil
	})
	return crd.Name
}

func (b bench) storedVersions(t *testing.T, crd string) []string {
	t.Helper()
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: crd}, d); err != nil {
		t.Fatal(err)
	}
	return d.Status.StoredVersions
}

// migrate runs xpkg migrate-storage, which has to end with an exit code.
func (b bench) migrate(t *testing.T, code int, args ...string) ended {
	t.Helper()
	var out, errs bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	got := cli.Main(t.Context(), append([]string{"xpkg", "migrate-storage", "--kubeconfig", b.kubeconfig}, args...), env)
	if got != code {
		t.Fatalf("%q: exit code %d, want %d\n%s", args, got, code, errs.String())
	}
	return ended{got, out.String(), errs.String()}
}

// All CRDs of a package are migrated at once. A failure of one CRD is listed with the results of the others.
func TestMigrateStorageOfAPackage(t *testing.T) {
	b := newBench(t)
	b.must(t, 0, "install", "provider", b.push(t, "migrated", "v1", "Raft"), "migrated", "--wait", "1m")
	owner := b.provider(t, "migrated")
	first, second := b.formerVersions(t, owner, "firsts"), b.formerVersions(t, owner, "seconds")

	checkMatches(t, b.migrate(t, 0, "provider/migrated", "--dry-run").out, `^firsts\.migrated\.test +v1alpha1 +v1 +1 +would be migrated\n`+
		`seconds\.migrated\.test +v1alpha1 +v1 +1 +would be migrated\n1 CRD up to date$`)
	if stored := b.storedVersions(t, first); !slices.Contains(stored, "v1alpha1") {
		t.Errorf("the dry run wrote: %v", stored)
	}

	r := b.migrate(t, 9, "--crd", first, "--crd", "missing.migrated.test", "-o", "json")
	var results []struct {
		CRD, Error string
		Migrated   bool
	}
	if err := json.Unmarshal([]byte(r.out), &results); err != nil {
		t.Fatal(err)
	}
	if len(results) != 2 || results[0].CRD != first || !results[0].Migrated || results[1].Error == "" {
		t.Errorf("results: %+v", results)
	}
	checkMatches(t, r.errors, `^error: StorageNotMigrated: 1 CRD of 2 not migrated`)

	checkMatches(t, b.migrate(t, 0, "migrated").out, `^seconds\.migrated\.test +v1alpha1 +v1 +1 +migrated\n2 CRDs up to date$`)
	for _, crd := range []string{first, second} {
		if stored := b.storedVersions(t, crd); !slices.Equal(stored, []string{"v1"}) {
			t.Errorf("%s: stored versions %v", crd, stored)
		}
	}
	b.migrate(t, 0, "--all")
	b.migrate(t, 3)
	b.migrate(t, 3, "migrated", "--all")
	b.migrate(t, 5, "unknown")
	b.must(t, 0, "uninstall", "provider", "migrated", "--yes", "--wait", "1m")
}
