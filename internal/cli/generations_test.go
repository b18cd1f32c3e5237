package cli_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/generation"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// newest returns the newest generation that commands show.
func (b bench) newest(t *testing.T) (out struct {
	Number   int64                `json:"number"`
	Healthy  bool                 `json:"healthy"`
	By       []string             `json:"by"`
	Why      []string             `json:"why"`
	Packages []generation.Package `json:"packages"`
}) {
	t.Helper()
	var list []struct {
		Number int64 `json:"number"`
	}
	decode := func(e ended, to any) {
		if err := json.Unmarshal([]byte(e.out), to); err != nil {
			t.Fatal(err, e.out)
		}
	}
	if decode(b.plain(t, 0, "history", "-o", "json"), &list); len(list) == 0 {
		return out
	}
	decode(b.plain(t, 0, "history", strconv.FormatInt(list[0].Number, 10), "-o", "json"), &out)
	return out
}

// newHistoryBench returns a bench whose manager has a namespace, in which it records generations.
func newHistoryBench(t *testing.T) bench {
	t.Helper()
	e := env.New(t)
	e.EnsureCreated(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controller.DefaultNamespace}})
	return newBench(t)
}

// recorded waits until the installed packages are the newest generation, and returns its number.
func (b bench) recorded(t *testing.T) int64 {
	t.Helper()
	var number int64
	wait.Until(t, env.Limit, "the packages are recorded", func() (string, bool) {
		g := b.newest(t)
		number = g.Number
		changes := generation.Changes(g.Packages, generation.Of(b.packages(t)))
		return fmt.Sprint(changes), g.Number > 0 && g.Healthy && len(changes) == 0
	})
	return number
}

func (b bench) packages(t *testing.T) []v1.Package {
	t.Helper()
	var out []v1.Package
	for _, kind := range v1.PackageKinds() {
		list := v1.NewPackageList(kind)
		if err := b.client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		out = append(out, list.Packages()...)
	}
	return out
}

// state returns the packages of the cluster and the descriptions of the definitions of a group.
func (b bench) state(t *testing.T, group string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, p := range generation.Of(b.packages(t)) {
		out[p.Short()] = fmt.Sprintf("%s %s %v %v", p.Spec.Package, p.Digest, *p.Spec.RevisionHistoryLimit, p.Labels)
	}
	var crds apiextensionsv1.CustomResourceDefinitionList
	if err := b.client.List(t.Context(), &crds); err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds.Items {
		if strings.HasSuffix(crd.Spec.Group, group) {
			out[crd.Name] = crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description
		}
	}
	return out
}

// Ten generations of forty packages, which return from the tenth to the first, and forward again: equal objects with
// equal digests. Three generations of six packages are proved in each run of the tests.
func TestAllPackagesReturnToAGenerationAndForwardAgain(t *testing.T) {
	generations, count := 3, 6
	if lane.IsFull() {
		generations, count = 10, 40
	}
	b := newHistoryBench(t)
	const group = "returned.test"
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("returned-%02d", i))
	}
	reference := func(i, g int) string {
		stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: p\n"
		if i > 0 && i < count-1 && i%3 == 0 { // Every third one needs the one before it in the same version.
			stream += fmt.Sprintf("spec: {dependsOn: [{provider: %s/returned/%s, version: v%d.0.0}]}\n", b.registry, names[i-1], g)
		}
		stream += publish.Definition(names[i]+"."+group, "Boat", fmt.Sprint("v", g))
		return publish.Stream(t, b.registry, "returned/"+names[i], fmt.Sprintf("v%d.0.0", g), []byte(stream)).String()
	}
	t.Cleanup(func() {
		b.run(t, b.kubeconfig, append([]string{"uninstall", "--yes", "--wait", "1m"}, names...)...)
	})
	numbers, states := make([]int64, generations), make([]map[string]string, generations)
	for g := range generations {
		// The last package comes with the second generation.
		installed := names[:count-1]
		for i := range count {
			if ref := reference(i, g+1); g == 0 && i < count-1 || g == 1 && i == count-1 {
				b.must(t, 0, "install", "provider", strings.SplitN(ref, "@", 2)[0], names[i], "--wait", "1m")
			}
		}
		if g > 0 {
			args := []string{"update", "--atomic", "--yes"}
			for _, name := range installed {
				args = append(args, fmt.Sprintf("%s@v%d.0.0", name, g+1))
			}
			b.must(t, 0, args...)
			b.must(t, 0, "update", names[0], "--revision-history-limit", strconv.Itoa(g+2), "--yes", "--wait", "1m")
		}
		numbers[g] = b.recorded(t)
		states[g] = b.state(t, group)
	}
	if got := b.newest(t); got.Number != numbers[generations-1] || !got.Healthy {
		t.Errorf("the newest generation is %+v", got)
	}
	var order []int
	for g := range generations {
		order = append(order, g)
	}
	back := slices.Clone(order)
	slices.Reverse(back)
	for _, g := range append(back, order...) {
		b.must(t, 0, "rollback", "--to-generation", strconv.FormatInt(numbers[g], 10), "--yes")
		b.recorded(t)
		if got := b.state(t, group); !maps.Equal(got, states[g]) {
			t.Fatalf("generation %d is\n%v, and was\n%v", g, got, states[g])
		}
	}
}

// The history names who has changed the packages, and why. A generation is a set of packages that a rollback makes
// whole again: moved tags, uninstalled packages and their custom resources included.
func TestHistoryOfAllPackages(t *testing.T) {
	b := newHistoryBench(t)
	first := b.recordedAfter(t, func() {
		b.must(t, 0, "install", "provider", b.push(t, "history/one", "v1", "Kept"), "one", "--wait", "1m")
	})
	t.Cleanup(func() {
		for _, name := range []string{"one", "two"} {
			b.run(t, b.kubeconfig, "uninstall", name, "--yes", "--on-delete", "cascade=100", "--wait", "1m")
		}
	})
	if g := b.newest(t); !slices.Equal(g.By, []string{"xpkg"}) {
		t.Errorf("an install is by %v", g.By)
	}
	second := b.recordedAfter(t, func() {
		b.must(t, 0, "install", "provider", b.push(t, "history/two", "v1", "Gone"), "two", "--wait", "1m")
	})
	third := b.recordedAfter(t, func() {
		patch := []byte(`{"metadata":{"annotations":{"kubernetes.io/change-cause":"ticket 12"}},"spec":{"revisionHistoryLimit":4}}`)
		if err := b.client.Patch(t.Context(), b.provider(t, "one"), client.RawPatch("application/merge-patch+json", patch),
			client.FieldOwner("argocd")); err != nil {
			t.Fatal(err)
		}
	})
	if g := b.newest(t); !slices.Equal(g.By, []string{"argocd"}) || !slices.Equal(g.Why, []string{"ticket 12"}) {
		t.Errorf("the change of another client is by %v, because of %v", g.By, g.Why)
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	b.plain(t, 0, "history").prints(t,
		"^"+number(third)+` +True +\S+ +argocd +provider/one v1 \(revisionHistoryLimit\)$`,
		"^"+number(second)+` +True +\S+ +xpkg +provider/two v1 installed$`)
	b.plain(t, 0, "history", "generation:"+number(third)).prints(t, `^By: +argocd$`, `^Why: +ticket 12$`, `^  provider/two .*/history/two:v1`)
	b.plain(t, 0, "diff", "generation:"+number(second), "generation:"+number(third)).
		prints(t, `^  provider/one v1 \(revisionHistoryLimit\)$`)
	b.plain(t, 2, "diff", "generation:"+number(second), "generation:"+number(third), "--fail-on", "any")
	b.plain(t, 0, "diff", "generation:"+number(third), "generation:"+number(third), "--fail-on", "any").
		prints(t, `^No differences\.$`)

	// The tag moves, and a custom resource comes.
	was := b.provider(t, "one").Status.ResolvedDigest
	b.push(t, "history/one", "v2", "Kept")
	boat := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "history-two.apply.test/v1", "kind": "Gone", "metadata": map[string]any{"name": "a"},
	}}
	if err := b.client.Create(t.Context(), boat); err != nil {
		t.Fatal(err)
	}
	b.recordedAfter(t, func() { b.must(t, 0, "update", "one", "v2", "--yes", "--wait", "1m") })
	b.push(t, "history/one", "v1", "Kept", "Other")
	back := []string{"rollback", "--to-generation", number(first)}
	b.must(t, 2, append(back, "--dry-run")...).prints(t, "^roll back provider/one$", "^uninstall provider/two$")
	b.must(t, 9, append(back, "--yes")...).prints(t, "^error: CustomResourcesExist: ", "--on-delete=orphan`")
	b.must(t, 3, append(back, "--on-delete", "cascade=1")...).prints(t, "^error: NotConfirmed: ")
	b.recordedAfter(t, func() {
		b.must(t, 0, append(back, "--yes", "--on-delete", "cascade=1")...).
			prints(t, `^provider/one healthy \(.*/history/one:v1@`+was+`\)$`, "^provider/two gone$")
	})
	if g := b.newest(t); len(g.By) != 1 || g.By[0] == "xpkg" || !slices.ContainsFunc(g.Why, func(why string) bool {
		return strings.HasPrefix(why, "xpkg rollback --to-generation "+number(first))
	}) {
		t.Errorf("the rollback is by %v, because of %v", g.By, g.Why)
	}
	if got := b.provider(t, "one").Status.ResolvedDigest; got != was {
		t.Errorf("one has the digest %s, and had %s", got, was)
	}
	b.recordedAfter(t, func() { // A transaction is the cause of one generation.
		patch := []byte(`{"metadata":{"annotations":null},"spec":{"revisionHistoryLimit":5}}`)
		if err := b.client.Patch(t.Context(), b.provider(t, "one"), client.RawPatch("application/merge-patch+json", patch),
			client.FieldOwner("flux")); err != nil {
			t.Fatal(err)
		}
	})
	if g := b.newest(t); !slices.Equal(g.By, []string{"flux"}) || len(g.Why) > 0 {
		t.Errorf("the change after the rollback is by %v, because of %v", g.By, g.Why)
	}
	b.must(t, 0, append(back, "--yes")...).prints(t, "^provider/one (unchanged|healthy) ")

	for _, wrong := range [][]string{
		{"rollback"}, {"rollback", "one", "--to-generation", "1"}, {"rollback", "--to-generation", "-1"},
		{"rollback", "--to-generation", "1", "--to", "v1"}, {"rollback", "one", "--on-delete", "orphan"},
		{"diff", "generation:1", "one.xpkg"}, {"diff", "generation:x", "generation:1"},
		{"diff", "generation:1", "generation:2", "--fail-on", "breaking"},
	} {
		b.plain(t, 3, wrong...).prints(t, "^error: Usage: ")
	}
	for _, none := range [][]string{
		{"rollback", "--to-generation", "999999"}, {"history", "999999"}, {"diff", "generation:1", "generation:999999"},
	} {
		b.plain(t, 5, none...).prints(t, "^error: GenerationNotFound: ")
	}
	// The content of a generation cannot be changed.
	stored := &appsv1.ControllerRevisionList{}
	if err := b.client.List(t.Context(), stored, client.HasLabels{generation.Label}); err != nil || len(stored.Items) == 0 {
		t.Fatal(err)
	}
	changed := stored.Items[0].DeepCopy()
	changed.Data.Raw = []byte(`{"packages":[]}`)
	if err := b.client.Update(t.Context(), changed); err == nil || !strings.Contains(err.Error(), "immutable") {
		t.Errorf("a generation can be changed: %v", err)
	}
}

// recordedAfter makes a change, waits until it is recorded, and returns the number of the generation.
func (b bench) recordedAfter(t *testing.T, change func()) int64 {
	t.Helper()
	before := b.newest(t).Number
	change()
	if number := b.recorded(t); number > before {
		return number
	}
	t.Fatalf("the change is not recorded after generation %d", before)
	return 0
}
