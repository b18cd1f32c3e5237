package bench_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/realcore"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/internal/up/child"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

const (
	// comparedCRDs is the number of CRDs of the compared package, unless XPKG_BENCH sets it.
	comparedCRDs = 101
	// idleFor is the time for which an idle manager is measured.
	idleFor = time.Minute
)

// BenchmarkComparison measures a bare client, Crossplane core with and without its conversion of CRDs to definitions of
// managed resources, and xpkg one after the other, each on a control plane of its own: the installation of a provider,
// an idle minute, a restart of the manager, an upgrade that changes a tenth of the CRDs, and the removal. Runtimes are
// external, so no Pods run. It prints a table in Markdown.
//
// XPKG_CORE is the path of an executable of core. Without it, the benchmark is skipped.
func BenchmarkComparison(b *testing.B) {
	core := realcore.Executable(b)
	n := comparedCRDs
	if os.Getenv(sizesVariable) != "" {
		n = sizes(b)[0]
	}
	definitions := readDefinitions(b, filepath.Join(corpus.Dir(b), largest), n)
	xpkg := program.Build(b)
	contenders := []contender{
		{name: "bare client"},
		// The package has no webhooks, so any certificate will do.
		{name: "Crossplane core", serverSecret: realcore.ClientSecret, start: func(b *testing.B, s *suite) managerProcess {
			return startCore(b, s, core)
		}},
		{name: "core without definitions", serverSecret: realcore.ClientSecret, start: func(
			b *testing.B, s *suite,
		) managerProcess {
			return startCore(b, s, core, "--enable-custom-to-managed-resource-conversion=false")
		}},
		{name: "xpkg", start: func(b *testing.B, s *suite) managerProcess {
			return program.Start(b, xpkg, s.kubeconfig, b.TempDir(), "--package-runtime", "External")
		}},
	}
	for b.Loop() {
		var results [][]row
		for _, c := range contenders {
			results = append(results, c.measure(b, definitions))
		}
		if err := printComparison(os.Stdout, machine(), n, contenders, results); err != nil {
			b.Fatal(err)
		}
		var rows []row
		for i, of := range results {
			for op, r := range of {
				if r.what != "" {
					r.group, r.key = "comparison", contenders[i].name+": "+operationNames[op]
					rows = append(rows, r)
				}
			}
		}
		keep(b, rows)
	}
}

// contender is a package manager, or the bare client if it does not start.
type contender struct {
	name  string
	start func(b *testing.B, s *suite) managerProcess
	// serverSecret is the Secret that the system of external runtimes reports to the manager. Core waits for it.
	serverSecret string
}

// managerProcess is a process of a package manager.
type managerProcess interface {
	PID() int
	Stop(t testing.TB)
}

// The operations of the comparison, in order.
const (
	opInstall = iota
	opIdle
	opRestart
	opUpgrade
	opRemoval
	operations
)

var operationNames = [operations]string{
	"install", "one minute idle", "restart of the manager", "upgrade, a tenth changed", "removal",
}

// measure measures all operations on a new control plane.
func (c contender) measure(b *testing.B, definitions [][]byte) []row {
	b.Helper()
	s, stop := newPlane(b)
	defer stop()
	s.serverSecret = c.serverSecret
	bun := s.bundle(definitions)
	raw, kinds := bodies(b, bun.stream())
	rows := make([]row, operations)
	m := meter{proxy: s.proxy, server: s.server}
	title := func(op int) string { return c.name + ": " + operationNames[op] }
	idle := func() { <-time.After(idleFor) }
	if c.start == nil {
		bare := newBareClient(b, s.proxy.config())
		rows[opInstall] = m.measure(b, len(raw), title(opInstall), func() { bare.create(b, raw, kinds) })
		rows[opIdle] = m.measure(b, len(raw), title(opIdle), idle)
		names, err := s.bare.names(b.Context(), bun, "")
		if err != nil {
			b.Fatal(err)
		}
		rows[opRemoval] = m.measure(b, len(raw), title(opRemoval), func() {
			bare.delete(b, names)
			s.bare.untilGone(b, bun)
		})
		return rows
	}
	next, _ := bun.upgraded(b)
	first := publish.Stream(b, s.registry, bun.packageName(), "v1.0.0", bun.stream())
	second := publish.Stream(b, s.registry, bun.packageName(), "v2.0.0", next.stream())
	process := c.start(b, s)
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: bun.packageName()}}
	m.client = process.PID()
	rows[opInstall] = m.measure(b, len(raw), title(opInstall), func() {
		p.Spec.Package = first.String()
		if err := s.direct.Create(b.Context(), p); err != nil {
			b.Fatal(err)
		}
		s.untilReported(b, p)
		s.untilServed(b, kinds)
	})
	rows[opIdle] = m.measure(b, len(raw), title(opIdle), idle)
	rows[opRestart] = func() row {
		process.Stop(b)
		stopped := meter{proxy: s.proxy, server: s.server}
		stopped.quiet(b)
		before := stopped.read(b)
		process = c.start(b, s)
		m.client = process.PID()
		done := m.read(b)
		r := m.row(b, before, done, len(raw), title(opRestart))
		r.client = usageOf(b, m.client).CPU
		return r
	}()
	rows[opUpgrade] = m.measure(b, len(raw), title(opUpgrade), func() { s.upgrade(b, p, second, kinds) })
	rows[opRemoval] = m.measure(b, len(raw), title(opRemoval), func() {
		if err := s.direct.Delete(b.Context(), p); err != nil {
			b.Fatal(err)
		}
		s.bare.untilGone(b, bun)
	})
	process.Stop(b)
	return rows
}

// newPlane starts a control plane, and returns the suite on it and the function that stops it.
func newPlane(b *testing.B) (*suite, func()) {
	b.Helper()
	process, err := child.Start(b.Context(), child.Options{
		Program: cluster.Program(b), DataDir: b.TempDir(), Throwaway: true, Log: io.Discard,
	})
	if err != nil {
		b.Fatal(err)
	}
	select {
	case <-process.Healthy():
	case <-process.Done():
		b.Fatal(process.Err())
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", process.Kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	cfg.QPS = -1
	p := newProxy(b, cfg)
	s := &suite{
		registry: cluster.Registry(b), direct: env.NewClient(b, cfg), bare: newBareClient(b, cfg),
		proxy: p, kubeconfig: p.kubeconfig(b), server: process.PID,
	}
	// Core reads the credentials of its ServiceAccount before it pulls a package.
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: realcore.Namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: realcore.Namespace, Name: realcore.Account}},
	} {
		if err := s.direct.Create(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
	return s, func() {
		if err := process.Stop(); err != nil {
			b.Error(err)
		}
	}
}

// untilServed waits until the API server serves all kinds: core reports a package healthy before.
func (s *suite) untilServed(b *testing.B, kinds []schema.GroupResource) {
	b.Helper()
	wait.Until(b, limit, "all kinds are served", func() (string, bool) {
		missing, err := s.bare.missing(b.Context(), kinds)
		return fmt.Sprintf("%d are missing, %v", missing, err), err == nil && missing == 0
	})
}

// upgrade moves a package to another version, until it is healthy and the changed CRDs are in the cluster. Core does
// not write the labels of CRDs, so their schemas are read.
func (s *suite) upgrade(b *testing.B, p *v1.Provider, ref oci.Reference, kinds []schema.GroupResource) {
	b.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"package":%q}}`, ref)
	if err := s.direct.Patch(b.Context(), p, client.RawPatch(types.MergePatchType, patch)); err != nil {
		b.Fatal(err)
	}
	wait.Until(b, limit, "the new version is resolved", func() (string, bool) {
		err := s.direct.Get(b.Context(), client.ObjectKeyFromObject(p), p)
		return p.Status.CurrentIdentifier, err == nil && p.Status.CurrentIdentifier == ref.String()
	})
	s.untilReported(b, p)
	for i := 0; i < len(kinds); i += changedShare {
		wait.Until(b, limit, "the changed CRDs are written", func() (string, bool) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			err := s.bare.call(b.Context(), http.MethodGet, definitionsPath+"/"+kinds[i].String(), "application/json", nil, crd)
			return fmt.Sprintf("%s: %v", kinds[i], err),
				err == nil && crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description == changedDescription
		})
	}
}

// startCore initializes core, and starts it with further arguments.
func startCore(b *testing.B, s *suite, executable string, args ...string) managerProcess {
	b.Helper()
	core := realcore.New(b, executable, s.kubeconfig, s.direct)
	wait.Until(b, limit, "core is initialized", func() (string, bool) {
		err := core.Initialize(b.Context())
		return fmt.Sprint(err), err == nil
	})
	process, err := core.Start(b, append(args, "--package-runtime=External")...)
	if err != nil {
		b.Fatal(err)
	}
	process.WaitReady(b)
	return process
}

// printComparison writes a table with the measurements of each contender in a column.
func printComparison(w io.Writer, about string, crds int, contenders []contender, results [][]row) error {
	var out bytes.Buffer
	noise := 0.0
	fmt.Fprintf(&out, "\n%s, a provider with %d CRDs\n\n|", about, crds)
	for _, c := range contenders {
		fmt.Fprintf(&out, " | %s", c.name)
	}
	fmt.Fprintf(&out, " |\n|---|%s\n", strings.Repeat("--:|", len(contenders)))
	for op, name := range operationNames {
		for _, column := range []struct {
			what  string
			value func(row) string
		}{
			{"wall", func(r row) string { return round(r.wall).String() }},
			{"server CPU", func(r row) string { return round(r.server).String() }},
			{"manager CPU", func(r row) string { return dash(r.client > 0, round(r.client)) }},
			{"writes", func(r row) string { return strconv.Itoa(r.calls.writes()) }},
			{"other requests", func(r row) string { return strconv.Itoa(r.calls.requests() - r.calls.writes()) }},
			{"peak memory of the manager", func(r row) string { return dash(r.peak > 0, fmt.Sprintf("%d MiB", r.peak>>20)) }},
		} {
			if (op == opIdle || op == opRestart) && column.what == "wall" {
				continue
			}
			fmt.Fprintf(&out, "| %s: %s", name, column.what)
			for i := range contenders {
				r := results[i][op]
				value := "–"
				if r.what != "" {
					value, noise = column.value(r), max(noise, r.noise)
				}
				fmt.Fprintf(&out, " | %s", value)
			}
			out.WriteString(" |\n")
		}
	}
	fmt.Fprintf(&out, "\nOther processes used at most %.0f %% of the processors during an operation.\n", 100*noise)
	_, err := out.WriteTo(w)
	return err
}
