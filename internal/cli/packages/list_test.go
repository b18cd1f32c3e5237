package packages

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/xpkg-dev/xpkg/apis"
	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A row is printed again only if a cell other than the age differs.
func TestWatchPrintsChangedRowsOnly(t *testing.T) {
	list := newWatchedList(&ListCmd{}, nil)
	p := &v1.Provider{}
	p.Name = "boats"
	change := func(deleted bool) []string {
		rows := list.change(t.Context(), inventory.Event{Object: p, Deleted: deleted})
		if len(rows) == 0 {
			return nil
		}
		return rows[0]
	}
	if row := change(false); len(row) != len(packageTable.Header) || row[0] != "provider/boats" {
		t.Errorf("first: %q", row)
	}
	if row := change(false); row != nil {
		t.Errorf("unchanged: %q", row)
	}
	p.SetConditions(metav1.Now(), v1.Healthy())
	if row := change(false); len(row) == 0 || row[2] != string(corev1.ConditionTrue) {
		t.Errorf("healthy: %q", row)
	}
	if row := change(true); len(row) == 0 || row[1] != "Deleted" {
		t.Errorf("deleted: %q", row)
	}
	if rows := list.change(t.Context(), inventory.Event{Object: p, Unselected: true}); len(rows) != 1 ||
		rows[0][1] != "Unselected" || len(list.objects) > 0 {
		t.Errorf("unselected: %q", rows)
	}
	if row := change(false); row == nil {
		t.Error("a package that is created again is not printed")
	}
}

// A watch begins with the rows of the list, and prints the row of an install object again when the Provider that it
// uses changes.
func TestWatchPrintsTheRowsOfTheList(t *testing.T) {
	cluster := firstGenerationCluster(t, interceptor.Funcs{})
	c := &ListCmd{}
	watches, found, err := c.startWatches(testEnv(t), cluster, labels.Everything())
	if err != nil || len(watches) != len(inventory.WatchedKinds(firstgen.Frontend())) {
		t.Fatalf("%d watches, %v", len(watches), err)
	}
	watched, got := newWatchedList(c, cluster), []string{}
	for _, e := range found {
		watched.note(e)
	}
	for _, e := range found {
		for _, row := range watched.changed(t.Context(), e.Object) {
			got = append(got, strings.Join(row, " | "))
		}
	}
	if want := rows(listed(t, cluster, "", ""))[1:]; !slices.Equal(got, want) {
		t.Errorf("the watch prints\n%s\nand the list\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	p := watched.objects["provider/boats"].DeepCopyObject().(*v1.Provider)
	p.SetConditions(metav1.Time{}, v1.Inactive(""))
	var names []string
	for _, row := range watched.change(t.Context(), inventory.Event{Object: p}) {
		names = append(names, row[0]+" "+row[1])
	}
	if want := []string{
		"provider/boats False", "clusterpackageinstall/team/boats False", "packageinstall/team/mine False",
	}; !slices.Equal(names, want) {
		t.Errorf("the changed rows are %q, want %q", names, want)
	}
	if rows := watched.change(t.Context(), inventory.Event{
		Object: watched.objects["package/team/redis"], Deleted: true,
	}); len(rows) != 1 || rows[0][1] != "Deleted" {
		t.Errorf("a deleted Package has the rows %q", rows)
	}
}

// A cluster without the first generation, or a user who may not read it, has the watches of packages.
func TestWatchLeavesOutKindsThatTheListLeavesOut(t *testing.T) {
	cluster := firstGenerationCluster(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(v1.PackageList); !ok {
				return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no role"))
			}
			return c.List(ctx, list, opts...)
		},
	})
	watches, found, err := (&ListCmd{}).startWatches(testEnv(t), cluster, labels.Everything())
	if err != nil || len(watches) != len(v1.PackageKinds()) || len(found) != 1 {
		t.Errorf("%d watches, %d objects, %v", len(watches), len(found), err)
	}
}

// testEnv returns the environment of a command of the program.
func testEnv(t *testing.T) *terminal.Env {
	return &terminal.Env{Context: t.Context(), Frontend: firstgen.Frontend()}
}

// installing returns an install object with a label, as the manager leaves it.
func installing(
	kind, name, provider string, spec packagesv1alpha1.InstallSpec, conditions ...v1.Condition,
) packagesv1alpha1.Install {
	in := packagesv1alpha1.NewInstall(kind)
	in.SetNamespace("team")
	in.SetName(name)
	in.SetLabels(map[string]string{"generation": "first"})
	*in.InstallSpec(), in.InstallStatus().Provider = spec, provider
	in.SetConditions(metav1.Time{}, conditions...)
	return in
}

// firstGenerationCluster returns a cluster with a Provider that two install objects use, one install object without a
// Provider, the record of an install object, and a Package of a user.
func firstGenerationCluster(t *testing.T, calls interceptor.Funcs) client.WithWatch {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats"}}
	p.Spec.Package, p.Status.CurrentRevision, p.Status.ResolvedDigest = "registry.example.org/boats:v1", "boats-1",
		"sha256:1"
	p.SetConditions(metav1.Time{}, v1.Active(), v1.Healthy())
	rev := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: "boats-1", Annotations: map[string]string{
		xpkg.AnnotationTitle: "Boats and ships\nfor all", xpkg.AnnotationCategory: "Transport",
	}}}
	rev.Status.Kinds = &v1.KindCounts{Active: 2, Offered: 3}
	ready := v1.Condition{Type: v1.TypeReady, Status: corev1.ConditionTrue, Reason: "Available"}
	failed := v1.Condition{Type: v1.TypeReady, Status: corev1.ConditionFalse, Reason: "AmbiguousKind"}
	notSynced := v1.Condition{Type: v1.TypeSynced, Status: corev1.ConditionFalse, Reason: "ReconcileError"}
	record := &packagesv1alpha1.Package{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "boats", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: packagesv1alpha1.GroupVersion.String(), Kind: packagesv1alpha1.ClusterPackageInstallKind, Name: "boats",
			UID: "1",
		}}}}
	redis := &packagesv1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "redis"}}
	redis.Spec.Title, redis.Spec.Category = "Redis", "Databases"
	redis.Spec.CRDs = []packagesv1alpha1.Kind{{APIVersion: "redis.example.org/v1", Kind: "RedisCluster"}}
	redis.Spec.Controller.Deployment = &packagesv1alpha1.ControllerDeployment{Name: "redis", Spec: runtime.RawExtension{
		Raw: []byte(`{"template":{"spec":{"containers":[{"name":"controller","image":"redis/controller:v2"}]}}}`),
	}}
	redis.SetConditions(metav1.Time{}, v1.Condition{
		Type: v1.TypeReady, Status: corev1.ConditionFalse, Reason: packagesv1alpha1.ReasonCreating,
	})
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(calls).WithObjects(record, redis).
		WithObjects(p, rev,
			installing(
				packagesv1alpha1.ClusterPackageInstallKind, "boats", "boats",
				packagesv1alpha1.InstallSpec{Source: "registry.example.org", Package: "boats:v1"}, v1.Synced(), ready,
			),
			installing(
				packagesv1alpha1.PackageInstallKind, "mine", "boats", packagesv1alpha1.InstallSpec{CRD: "ships.example.org/v1"},
				v1.Synced(), ready,
			),
			installing(
				packagesv1alpha1.ClusterPackageInstallKind, "rafts", "", packagesv1alpha1.InstallSpec{CRD: "rafts.example.org/v1"},
				notSynced, failed,
			),
		).Build()
}

// listed returns the output of `xpkg list` for a cluster.
func listed(t *testing.T, cluster client.Client, output, selector string) string {
	t.Helper()
	all, err := inventory.LoadPackages(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	labels, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	c, out := &ListCmd{}, &strings.Builder{}
	c.Output = view.ListFormat(output)
	if err := c.Print(
		out,
		c.list(&terminal.Env{Context: t.Context(), Stderr: out}, cluster, all, allObjects(testEnv(t), cluster, all), labels),
	); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// rows returns the cells of the lines of a table, with one space in place of each gap between two columns.
func rows(table string) []string {
	gap := regexp.MustCompile("  +")
	var out []string
	for line := range strings.Lines(table) {
		out = append(out, gap.ReplaceAllString(strings.TrimSpace(line), " | "))
	}
	return out
}

func TestListShowsObjectsOfTheFirstGeneration(t *testing.T) {
	cluster := firstGenerationCluster(t, interceptor.Funcs{})
	want := []string{
		"NAME | INSTALLED | HEALTHY | VERSION | PACKAGE | AGE | INSTALL REASON",
		"provider/boats | True | True | v1 | registry.example.org/boats | - | explicit",
		"clusterpackageinstall/team/boats | True | True | v1 | boats:v1 (source registry.example.org) | - | explicit",
		"clusterpackageinstall/team/rafts | False | False | - | (for rafts.example.org/v1) | - | explicit",
		"packageinstall/team/mine | True | True | v1 | (for ships.example.org/v1) | - | explicit",
		"package/team/redis | False | False | v2 | redis/controller:v2 | - | explicit",
	}
	if got := rows(listed(t, cluster, "", "")); !slices.Equal(got, want) {
		t.Errorf("the table is %q, want %q", got, want)
	}

	t.Run("AnObjectIsNotInstalledBeforeItsProvider", func(t *testing.T) {
		early := installing(
			packagesv1alpha1.ClusterPackageInstallKind, "early", "early", packagesv1alpha1.InstallSpec{Package: "early:v1"},
			v1.Synced(),
		)
		cluster := firstGenerationCluster(t, interceptor.Funcs{})
		if err := cluster.Create(t.Context(), early); err != nil {
			t.Fatal(err)
		}
		if got, want := rows(listed(
			t, cluster, "", "",
		))[3], "clusterpackageinstall/team/early | False | Unknown | v1 | early:v1 | - | explicit"; got != want {
			t.Errorf("the row is %q, want %q", got, want)
		}
	})
	t.Run("TheWideTableHasTheRevisionAndThePresentationOfTheProvider", func(t *testing.T) {
		const wide = " | boats-1 | sha256:1 | 2/3 | Boats and ships | Transport"
		want := []string{want[0] +
			" | REVISION | DIGEST | KINDS | TITLE | CATEGORY", strings.Replace(want[1], "org/boats", "org/boats:v1", 1) + wide, want[2] +
			wide, want[3], want[4] + wide, want[5] + " | Redis | Databases"}
		if got := rows(listed(t, cluster, "wide", "")); !slices.Equal(got, want) {
			t.Errorf("the table is %q, want %q", got, want)
		}
	})
	t.Run("TheNamesAreThoseOfKubectl", func(t *testing.T) {
		want := "provider.pkg.crossplane.io/boats\nclusterpackageinstall.packages.crossplane.io/boats\n" +
			"clusterpackageinstall.packages.crossplane.io/rafts\npackageinstall.packages.crossplane.io/mine\npackage.packages.crossplane.io/redis\n"
		if got := listed(t, cluster, "name", ""); got != want {
			t.Errorf("the names are %q, want %q", got, want)
		}
	})
	t.Run("JSONHasTheObjectsWithTheirTypes", func(t *testing.T) {
		var list struct {
			Items []metav1.PartialObjectMetadata
		}
		if err := json.Unmarshal([]byte(listed(t, cluster, "json", "")), &list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range list.Items {
			got = append(got, o.APIVersion+" "+o.Kind+" "+o.Namespace+"/"+o.Name)
		}
		want := []string{
			"pkg.crossplane.io/v1 Provider /boats", "packages.crossplane.io/v1alpha1 ClusterPackageInstall team/boats",
			"packages.crossplane.io/v1alpha1 ClusterPackageInstall team/rafts",
			"packages.crossplane.io/v1alpha1 PackageInstall team/mine",
			"packages.crossplane.io/v1alpha1 Package team/redis",
		}
		if !slices.Equal(got, want) {
			t.Errorf("the objects are %q, want %q", got, want)
		}
	})
	t.Run("ASelectorAppliesToThem", func(t *testing.T) {
		if got := rows(listed(t, cluster, "", "generation=first")); len(got) != 4 || strings.HasPrefix(got[1], "provider/") {
			t.Errorf("with the label: %q", got)
		}
		if got := rows(listed(t, cluster, "", "generation!=first")); len(got) != 3 ||
			!strings.HasPrefix(got[1], "provider/") {
			t.Errorf("without the label: %q", got)
		}
	})
}

// Neither the permission to read install objects nor that to read revisions is necessary.
func TestListWorksWithThePermissionToReadPackagesOnly(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no role"))
	cluster := firstGenerationCluster(t, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(v1.PackageList); !ok {
				return forbidden
			}
			return c.List(ctx, list, opts...)
		},
	})
	want := "provider/boats | True | True | v1 | registry.example.org/boats:v1 | - | explicit | boats-1 | sha256:1"
	if got := rows(listed(t, cluster, "wide", "")); len(got) != 2 || got[1] != want {
		t.Errorf("the table is %q, want the row %q", got, want)
	}
}
