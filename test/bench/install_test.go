// Package bench_test measures the package manager against the floor of the same
// machine in the same run: a bare client that creates the same objects, at the
// same concurrency, on the same API server.
package bench_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/plan"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/internal/testing/plane"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

const (
	largest = "providers/crossplane-contrib__provider-upjet-aws@v2.6.0/package/crds"
	limit   = 10 * time.Minute
)

// sizes are the numbers of definitions. XPKG_BENCH=large adds those for which an
// API server needs several gigabytes.
func sizes() []int {
	if os.Getenv("XPKG_BENCH") == "large" {
		return []int{50, 200, 500, 1000}
	}
	return []int{50, 200}
}

// meter counts what a client sends to the API server.
type meter struct {
	reads, writes, bytes atomic.Int64
	next                 http.RoundTripper
}

func (m *meter) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.URL.Query().Get("watch") != "" || strings.Contains(r.URL.Path, "/events"):
	case r.Method == http.MethodGet:
		m.reads.Add(1)
	default:
		m.writes.Add(1)
		m.bytes.Add(max(0, r.ContentLength))
	}
	return m.next.RoundTrip(r)
}

func metered(cfg *rest.Config) (*rest.Config, *meter) {
	m, c := &meter{}, rest.CopyConfig(cfg)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { m.next = next; return m })
	return c, m
}

// row is one line of the table.
type row struct {
	what          string
	wall          time.Duration
	reads, writes int64
	bytes         int64
}

func (m *meter) row(what string, started time.Time) row {
	return row{what, time.Since(started), m.reads.Load(), m.writes.Load(), m.bytes.Load()}
}

func (m *meter) reset() {
	m.reads.Store(0)
	m.writes.Store(0)
	m.bytes.Store(0)
}

func BenchmarkInstall(b *testing.B) {
	dir := corpus.Dir(b)
	for _, n := range sizes() {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				report(b, n, measure(b, filepath.Join(dir, largest), n))
			}
		})
	}
}

func report(b *testing.B, n int, rows []row) {
	b.Helper()
	floor := rows[0].wall
	for _, r := range rows {
		fmt.Fprintf(os.Stderr, "%5d definitions  %-36s %8s  %5.2f × floor  %5d reads  %5d writes  %8.1f MB sent\n",
			n, r.what, r.wall.Round(10*time.Millisecond), r.wall.Seconds()/floor.Seconds(), r.reads, r.writes, float64(r.bytes)/1e6)
	}
	b.ReportMetric(rows[1].wall.Seconds()/floor.Seconds(), "×floor")
	b.ReportMetric(float64(rows[1].writes)/float64(n), "writes/object")
}

// measure gives the floor, and then an install and what follows it.
func measure(b *testing.B, crds string, n int) []row {
	b.Helper()
	cfg := cluster.Start(b)
	stream := packageOf(b, crds, n)
	source, registry := newSource(b)
	// The API server holds up the first object of a kind that is younger than two
	// seconds, so the package API is there before anything is measured.
	managed, m := metered(cfg)
	stop := plane.Run(b, managed, source)
	rows := []row{floor(b, cfg, stream)}

	first, second := publish(b, registry, "v1.0.0", stream), publish(b, registry, "v2.0.0", tenthChanged(stream, n))
	other := publish(b, registry, "v9.0.0", otherPackage)
	c := plane.Client(b, cfg)

	m.reset()
	started := time.Now()
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "bench"}, Spec: v1.ProviderSpec{PackageSpec: v1.PackageSpec{Package: first}}}
	create(b, c, p)
	rows = append(rows, m.row("xpkg: install, until established", started))

	m.reset()
	started = time.Now()
	o := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: v1.ProviderSpec{PackageSpec: v1.PackageSpec{Package: other}}}
	create(b, c, o)
	rows = append(rows, m.row("xpkg: install of an unrelated package", started))

	m.reset()
	started = time.Now()
	p.Spec.Package = second
	if err := c.Update(b.Context(), p); err != nil {
		b.Fatal(err)
	}
	untilHealthy(b, c, p, second)
	rows = append(rows, m.row("xpkg: upgrade, a tenth changed", started))
	untilQuiet(b, m)
	stop()

	m.reset()
	started = time.Now()
	stop = plane.Run(b, managed, source)
	untilQuiet(b, m)
	rows = append(rows, m.row("xpkg: restart, nothing changed", started))
	remove(b, c, p)
	remove(b, c, o)
	stop()
	return rows
}

// packageOf is a provider with the first n definitions of a folder.
func packageOf(b *testing.B, crds string, n int) []byte {
	b.Helper()
	files, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err != nil || len(files) < n {
		b.Skipf("%s has %d definitions, %d are needed (%v)", crds, len(files), n, err)
	}
	out := bytes.NewBufferString("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: bench\n")
	for _, f := range files[:n] {
		raw, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		if !bytes.HasPrefix(raw, []byte("---")) {
			out.WriteString("---\n")
		}
		out.Write(raw)
	}
	return out.Bytes()
}

const otherPackage = `apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata:
  name: other
`

// tenthChanged gives every tenth definition another label.
func tenthChanged(stream []byte, n int) []byte {
	parts := strings.SplitAfter(string(stream), "\nmetadata:\n")
	for i := 2; i < len(parts); i += 10 {
		parts[i] = "  labels:\n    changed: \"true\"\n" + parts[i]
	}
	return []byte(strings.Join(parts, ""))
}

func newSource(b *testing.B) (*content.Source, string) {
	b.Helper()
	store, err := oci.OpenStore(filepath.Join(b.TempDir(), "store"), oci.StoreOptions{})
	if err != nil {
		b.Fatal(err)
	}
	source := content.NewSource(content.Options{Store: store})
	b.Cleanup(func() {
		source.Close()
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	return source, cluster.Registry(b)
}

func publish(b *testing.B, registry, tag string, stream any) string {
	b.Helper()
	raw, ok := stream.([]byte)
	if !ok {
		raw = []byte(stream.(string))
	}
	image, err := oci.BuildImage(b.Context(), oci.ImageInput{PackageYAML: raw})
	if err != nil {
		b.Fatal(err)
	}
	ref, err := oci.ParseReference(registry+"/bench/provider:"+tag, oci.ParseOptions{})
	if err != nil {
		b.Fatal(err)
	}
	remote := oci.NewRemote(oci.RemoteOptions{})
	defer remote.Close()
	if _, err := remote.Push(b.Context(), ref, image); err != nil {
		b.Fatal(err)
	}
	return ref.String()
}

// floor creates the definitions with nothing but a client, waits until they are
// served, and deletes them.
func floor(b *testing.B, cfg *rest.Config, stream []byte) row {
	b.Helper()
	pkg, err := format.Read(stream, format.ReadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	metered, m := metered(cfg)
	c, err := apply.NewCluster(metered)
	if err != nil {
		b.Fatal(err)
	}
	var p plan.Plan
	bodies, kinds := map[plan.Ref][]byte{}, []schema.GroupResource{}
	for _, o := range pkg.Objects {
		raw, err := o.JSON()
		if err != nil {
			b.Fatal(err)
		}
		ref := plan.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: o.Name}
		bodies[ref] = raw
		p.Changes = append(p.Changes, plan.Change{Action: plan.Create, Ref: ref})
		plural, group, _ := strings.Cut(o.Name, ".")
		kinds = append(kinds, schema.GroupResource{Group: group, Resource: plural})
	}
	m.reset()
	started := time.Now()
	if _, err := c.Run(b.Context(), p, func(ref plan.Ref) ([]byte, error) { return bodies[ref], nil }); err != nil {
		b.Fatal(err)
	}
	wait.Until(b, limit, "the definitions are served", func() (string, bool) {
		served, err := c.Served(b.Context())
		for _, k := range kinds {
			if !served[k] {
				return fmt.Sprint(k, err), false
			}
		}
		return "", true
	})
	r := m.row("bare client: create, until established", started)
	deleteAll(b, cfg, p)
	return r
}

func deleteAll(b *testing.B, cfg *rest.Config, p plan.Plan) {
	b.Helper()
	c := plane.Client(b, cfg)
	var group sync.WaitGroup
	for _, ch := range p.Changes {
		group.Add(1)
		go func() {
			defer group.Done()
			o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: ch.Ref.Name}}
			o.SetGroupVersionKind(schema.FromAPIVersionAndKind(ch.Ref.APIVersion, ch.Ref.Kind))
			if err := c.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
				b.Error(err)
			}
		}()
	}
	group.Wait()
	untilGone(b, c)
}

// untilGone waits until no definition of the provider is left.
func untilGone(b *testing.B, c client.Client) {
	b.Helper()
	wait.Until(b, limit, "the definitions are gone", func() (string, bool) {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
		if err := c.List(b.Context(), &list); err != nil {
			return err.Error(), false
		}
		for _, o := range list.Items {
			if strings.Contains(o.Name, ".aws.") {
				return o.Name, false
			}
		}
		return "", true
	})
}

func create(b *testing.B, c client.Client, p *v1.Provider) {
	b.Helper()
	if err := c.Create(b.Context(), p); err != nil {
		b.Fatal(err)
	}
	untilHealthy(b, c, p, p.Spec.Package)
}

func untilHealthy(b *testing.B, c client.Client, p *v1.Provider, ref string) {
	b.Helper()
	wait.Until(b, limit, p.Name+" is healthy", func() (string, bool) {
		if err := c.Get(b.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		h := p.GetCondition(v1.TypeHealthy)
		return h.Message, h.Status == corev1.ConditionTrue && p.Status.CurrentIdentifier == ref && h.ObservedGeneration == p.Generation
	})
}

// untilQuiet waits until the manager has sent nothing for a second.
func untilQuiet(b *testing.B, m *meter) {
	b.Helper()
	last, since := int64(-1), time.Now()
	wait.Until(b, limit, "the manager is quiet", func() (string, bool) {
		if now := m.reads.Load() + m.writes.Load(); now != last {
			last, since = now, time.Now()
		}
		return "", time.Since(since) > time.Second
	})
}

func remove(b *testing.B, c client.Client, p *v1.Provider) {
	b.Helper()
	if err := c.Delete(b.Context(), p); err != nil {
		b.Fatal(err)
	}
	untilGone(b, c)
}
