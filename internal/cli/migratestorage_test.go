package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// formerVersions creates a CRD of a package with custom resources that are stored in a former version.
func (b bench) formerVersions(t *testing.T, owner *v1.Provider, plural string, resources int) string {
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
	for i := range resources {
		wait.Until(t, env.Limit, plural+" can be created", func() (string, bool) {
			err := b.client.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": group + "/v1", "kind": "Kind" + plural,
				"metadata": map[string]any{"name": fmt.Sprint("resource-", i)},
			}})
			return fmt.Sprint(err), err == nil
		})
	}
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
	return migrateWith(t.Context(), t, b.kubeconfig, code, args...)
}

func migrateWith(ctx context.Context, t *testing.T, kubeconfig string, code int, args ...string) ended {
	t.Helper()
	var out, errs bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	got := cli.Main(ctx, append([]string{"xpkg", "migrate-storage", "--kubeconfig", kubeconfig}, args...), env)
	if got != code {
		t.Fatalf("%q: exit code %d, want %d\n%s%s", args, got, code, out.String(), errs.String())
	}
	return ended{got, out.String(), errs.String()}
}

// All CRDs of a package are migrated at once. A failure of one CRD is listed with the results of the others.
func TestMigrateStorageOfAPackage(t *testing.T) {
	b := newBench(t)
	b.must(t, 0, "install", "provider", b.push(t, "migrated", "v1", "Raft"), "migrated", "--wait", "1m")
	owner := b.provider(t, "migrated")
	first, second := b.formerVersions(t, owner, "firsts", 1), b.formerVersions(t, owner, "seconds", 1)

	checkMatches(t, b.migrate(t, 0, "provider/migrated", "--dry-run").out,
		`^firsts\.migrated\.test +v1alpha1 +v1 +1 +would be migrated\n`+
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

	checkMatches(
		t, b.migrate(t, 0, "migrated").out, `^seconds\.migrated\.test +v1alpha1 +v1 +1 +migrated\n2 CRDs up to date$`,
	)
	for _, crd := range []string{first, second} {
		if stored := b.storedVersions(t, crd); !slices.Equal(stored, []string{"v1"}) {
			t.Errorf("%s: stored versions %v", crd, stored)
		}
	}
	b.migrate(t, 0, "--all")
	b.migrate(t, 3)
	b.migrate(t, 3, "migrated", "--all")
	b.migrate(t, 5, "unknown")
	b.must(t, 0, "uninstall", "provider", "migrated", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
}

// apiMeter is a proxy to the API server that counts requests and calls a function before each write of a status.
type apiMeter struct {
	proxy    http.Handler
	before   func()
	requests atomic.Int64
}

// ServeHTTP implements http.Handler.
func (m *apiMeter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.requests.Add(1)
	if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/status") {
		m.before()
	}
	m.proxy.ServeHTTP(w, r)
}

// migratedCRDs returns the number of CRDs for the test of many, 24 or XPKG_MIGRATE_CRDS.
func migratedCRDs(t *testing.T) int {
	t.Helper()
	text := os.Getenv("XPKG_MIGRATE_CRDS")
	if text == "" {
		return 24
	}
	count, err := strconv.Atoi(text)
	if err != nil || count < 24 {
		t.Fatalf("XPKG_MIGRATE_CRDS is %q: %v", text, err)
	}
	return count
}

// manyFormerVersions creates the CRDs of a Provider, most of them without custom resources. The first one serves no
// version.
func (b bench) manyFormerVersions(t *testing.T, owner *v1.Provider, count int) (crds []string, resources int) {
	t.Helper()
	crds = make([]string, count)
	t.Run("create", func(t *testing.T) {
		for i := range crds {
			n := map[int]int{1: 1, 5: 3}[i%8]
			resources += n
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				crds[i] = b.formerVersions(t, owner, fmt.Sprintf("many%03ds", i), n)
			})
		}
	})
	b.stopServing(t, crds[0])
	return crds, resources
}

// A Provider can have hundreds of CRDs, most of them without custom resources. Each CRD costs a fixed number of
// requests; an interrupted command continues with the CRDs that remain; and a CRD that cannot be migrated is named and
// stops no other one. XPKG_MIGRATE_CRDS sets the number of CRDs.
func TestMigrateStorageOfManyCRDs(t *testing.T) {
	count := migratedCRDs(t)
	b := newBench(t)
	b.must(t, 0, "install", "provider", b.push(t, "many", "v1", "Barge"), "many", "--wait", "1m")
	crds, resources := b.manyFormerVersions(t, b.provider(t, "many"), count)
	left := func() (n int) {
		for _, crd := range crds {
			if stored := b.storedVersions(t, crd); !slices.Equal(stored, []string{"v1"}) {
				n++
			}
		}
		return n
	}
	meter := &apiMeter{proxy: b.forward(t), before: func() {}}
	server := httptest.NewServer(meter)
	t.Cleanup(server.Close)
	kubeconfig := kubeconfigOf(t, server)
	migrate := func(ctx context.Context, code int, args ...string) (ended, int) {
		t.Helper()
		began, before := time.Now(), meter.requests.Load()
		e := migrateWith(ctx, t, kubeconfig, code, append(args, "many")...)
		requests := int(meter.requests.Load() - before)
		t.Logf("%d CRDs, %d custom resources: %d requests, %s\n%s", count, resources, requests, time.Since(began), e.errors)
		return e, requests
	}

	const selection = 20 // requests that select the CRDs
	if _, requests := migrate(t.Context(), 9, "--dry-run"); requests > selection+2*count {
		t.Errorf("the dry run made %d requests, want at most %d", requests, selection+2*count)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	var written atomic.Int64
	meter.before = func() {
		if int(written.Add(1)) == count/2 {
			interrupt()
		}
	}
	e, first := migrate(ctx, 130)
	checkMatches(
		t, e.errors,
		fmt.Sprintf(`error: Interrupted: stopped after \d+ of %d CRDs\n.*continues with the CRDs that remain`, count+1),
	)
	remaining := left()
	if remaining < count/4 || remaining > count*3/4 {
		t.Errorf("%d of %d CRDs remain after the interruption", remaining, count)
	}
	e, second := migrate(t.Context(), 9)
	checkMatches(
		t, e.out,
		`many000s\.migrated\.test +v1alpha1 +v1 +0 +KindNotServed: no version of CustomResourceDefinition many000s\.migrated\.test is served`,
	)
	checkMatches(t, e.errors, fmt.Sprintf(`error: StorageNotMigrated: 1 CRD of %d not migrated`, count+1))
	if n := left(); n != 1 {
		t.Errorf("%d CRDs remain, want one", n)
	}
	// A CRD is read, listed, read again and written; one that was migrated already is only read.
	if most := 2*selection + 4*count + resources + (count - remaining); first+second > most {
		t.Errorf("%d and %d requests, want at most %d", first, second, most)
	}
	b.must(t, 0, "uninstall", "provider", "many", "--yes", "--on-delete", "cascade=100", "--wait", "5m")
}

// Without responses of the API server, the command ends soon: it tries no further CRDs.
func TestMigrateStorageWithoutResponses(t *testing.T) {
	b := newBench(t)
	var args []string
	for i := range 40 {
		args = append(args, "--crd", fmt.Sprintf("silent%d.migrated.test", i))
	}
	_, cut := b.serve(t, 3, false)
	e := migrateWith(t.Context(), t, cut, 9, args...)
	if n := strings.Count(e.out, "not tried, because the API server did not respond"); n < 20 {
		t.Errorf("%d CRDs were not tried, want most of 40\n%s", n, e.out)
	}
	checkMatches(t, e.errors, `error: StorageNotMigrated: 40 CRDs of 40 not migrated`)
}

// stopServing makes a CRD serve no version.
func (b bench) stopServing(t *testing.T, name string) {
	t.Helper()
	wait.Until(t, env.Limit, name+" is not served", func() (string, bool) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := b.client.Get(t.Context(), client.ObjectKey{Name: name}, crd); err != nil {
			return err.Error(), false
		}
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Served = false
		}
		err := b.client.Update(t.Context(), crd)
		return fmt.Sprint(err), err == nil
	})
}
