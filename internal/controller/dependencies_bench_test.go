package controller_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// withLatency returns a fault that delays each response of a registry.
func withLatency(delay time.Duration) func(http.ResponseWriter, *http.Request) bool {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
		}
		return false
	}
}

// The size of the installed tree: the number of groups, and of packages in each.
const groups, each = 4, 9

// pushTree publishes a package with 40 dependencies on two levels, one of which has the
// given number of CRDs, and a single package with as many CRDs. Their names start with
// prefix.
func (w *dependencyEnv) pushTree(b *testing.B, prefix string, definitions int) (root, single string) {
	b.Helper()
	defines := func(name string) string {
		var objects []string
		for i := range definitions {
			objects = append(objects, crd(name+".dep.test", fmt.Sprintf("Kind%d", i), "one of many"))
		}
		ref, _ := w.registry.push(b, "dep/"+name+":v1.1.0", provider(name, objects...))
		return ref
	}
	var direct []string
	for g := range groups {
		var needs []string
		for i := range each {
			name := fmt.Sprintf("%s-part-%d-%d", prefix, g, i)
			w.push(b, "Provider", name+":v1.0.0")
			if g+i == 0 {
				defines(name)
			} else {
				w.push(b, "Provider", name+":v1.1.0")
			}
			needs = append(needs, name)
		}
		name := fmt.Sprintf("%s-group-%d", prefix, g)
		w.push(b, "Configuration", name+":v1.0.0", needs...)
		direct = append(direct, "configuration="+name)
	}
	return w.push(b, "Configuration", prefix+"-root:v1.0.0", direct...), defines(prefix + "-single")
}

// BenchmarkInstallClosure installs a package that needs 40 others, on two levels, from a registry
// with 30 ms for each request, until all of them are healthy. The floor is its slowest package,
// installed alone. If no package contains CRDs, the floor is the duration of the requests;
// otherwise, as in every real tree, it is the time until the API server serves the CRDs.
func BenchmarkInstallClosure(b *testing.B) {
	for _, definitions := range []int{0, 50} {
		b.Run(fmt.Sprintf("crds=%d", definitions), func(b *testing.B) {
			w := newDependencyEnv(b, "")
			for n := 0; b.Loop(); n++ {
				w.benchmarkInstall(b, fmt.Sprintf("n%d-%d", definitions, n), definitions)
			}
		})
	}
}

func (w *dependencyEnv) benchmarkInstall(b *testing.B, prefix string, definitions int) {
	b.StopTimer()
	w.registry.setFault(nil)
	root, single := w.pushTree(b, prefix, definitions)
	w.registry.setFault(withLatency(30 * time.Millisecond))
	b.StartTimer()
	begin := time.Now()
	alone := env.NewProvider("dep-"+prefix+"-single", single)
	w.CreateTemporary(b, alone)
	w.WaitHealthy(b, alone)
	floor := time.Since(begin)
	w.registry.reset()
	begin = time.Now()
	w.WaitHealthy(b, w.config(b, prefix+"-root", root))
	for g := range groups {
		w.WaitHealthy(b, &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("dep-%s-group-%d", prefix, g)}})
		for i := range each {
			w.WaitHealthy(b, &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("dep-%s-part-%d-%d", prefix, g, i)}})
		}
	}
	took := time.Since(begin)
	b.StopTimer()
	writes := w.repeatWrites(b, prefix)
	b.StartTimer()
	b.ReportMetric(float64(floor.Milliseconds()), "floor-ms")
	b.ReportMetric(float64(writes.Milliseconds()), "writes-ms")
	b.ReportMetric(float64(took.Milliseconds()), "closure-ms")
	b.ReportMetric(took.Seconds()/floor.Seconds(), "x-floor")
	b.ReportMetric(float64(len(w.registry.requests("")))/(1+groups+groups*each), "requests/package")
}

// repeatWrites returns the time that a bare client needs, with ten concurrent calls, to create the packages whose
// names start with prefix and their revisions under other names, and to write each status once, while no manager runs.
func (w *dependencyEnv) repeatWrites(b *testing.B, prefix string) time.Duration {
	b.Helper()
	w.stop()
	var copies []client.Object
	add := func(o client.Object) {
		if strings.HasPrefix(o.GetName(), "dep-"+prefix) {
			o.SetName("bare-" + o.GetName())
			o.SetUID("")
			o.SetResourceVersion("")
			o.SetFinalizers(nil)
			o.SetOwnerReferences(nil)
			o.SetManagedFields(nil)
			copies = append(copies, o)
		}
	}
	for _, kind := range v1.PackageKinds() {
		packages, revisions := v1.NewPackageList(kind), v1.NewPackage(kind).NewRevisionList()
		if err := errors.Join(w.Client.List(b.Context(), packages), w.Client.List(b.Context(), revisions)); err != nil {
			b.Fatal(err)
		}
		for _, p := range packages.Packages() {
			add(p)
		}
		for _, r := range revisions.Revisions() {
			add(r)
		}
	}
	begin := time.Now()
	calls, ctx := errgroup.WithContext(b.Context())
	calls.SetLimit(10)
	for _, o := range copies {
		calls.Go(func() error {
			status := o.DeepCopyObject().(client.Object)
			if err := w.Client.Create(ctx, o); err != nil {
				return err
			}
			status.SetResourceVersion(o.GetResourceVersion())
			return w.Client.Status().Update(ctx, status)
		})
	}
	if err := calls.Wait(); err != nil {
		b.Fatal(err)
	}
	took := time.Since(begin)
	for _, o := range copies {
		if err := w.Client.Delete(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
	w.stop = w.start(b)
	return took
}
