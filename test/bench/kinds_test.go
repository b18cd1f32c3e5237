package bench_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

const (
	// usedKinds is the number of kinds that are used of a large provider.
	usedKinds = 12
	// usedFactor bounds the time of an install of these, without the cold read, as a multiple of the time in which a bare
	// client creates their CRDs.
	usedFactor = 1.5
	// oneKindMore bounds the time until one more kind is served, beyond the time in which a bare client creates its CRD.
	oneKindMore = time.Second
	// unchangedFor is the time in which a manager without changes makes no call.
	unchangedFor = 30 * time.Second
	// knownKinds and activeKinds are numbers of kinds of all providers of a cluster, and mostKnownMemory bounds the memory
	// of the manager then, in MiB.
	knownKinds, activeKinds, mostKnownMemory = 10_000, 200, 120
)

// partial is an install of a provider with the capability safe-start.
type partial struct {
	*install
	// names are the CRDs of all managed resources.
	names []string
}

// newPartial publishes the bundle of a provider with the capability safe-start.
func (s *suite) newPartial(b *testing.B, definitions [][]byte) *partial {
	b.Helper()
	bun := s.bundle(definitions)
	p := &partial{install: &install{suite: s, bundle: bun, size: len(bun.files), cache: b.TempDir()}}
	stream := bytes.Replace(bun.stream(), []byte("kind: Provider\n"), []byte("kind: Provider\nspec:\n  capabilities: [safe-start]\n"), 1)
	_, kinds := bodies(b, stream)
	for n, kind := range kinds {
		if bytes.Contains(bun.files[n], []byte("- managed\n")) {
			p.names = append(p.names, kind.String())
		}
	}
	p.first = publish.Stream(b, s.registry, bun.packageName(), "v1.0.0", stream)
	return p
}

// sample returns n items, evenly distributed.
func sample[T any](all []T, n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = all[i*len(all)/n]
	}
	return out
}

// activate creates the provider with a choice of kinds, or changes the choice, until the kinds are served.
func (p *partial) activate(b *testing.B, choice string, served []string) {
	b.Helper()
	if p.pkg == nil {
		p.pkg = &v1.Provider{}
		p.pkg.Name, p.pkg.Spec.Package = p.bundle.packageName(), p.first.String()
		p.pkg.Annotations = map[string]string{activation.AnnotationKinds: choice}
		if err := p.direct.Create(b.Context(), p.pkg); err != nil {
			b.Fatal(err)
		}
		p.untilHealthy(b, p.pkg)
		p.kinds = resources(served)
		p.isServed(b)
		return
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, activation.AnnotationKinds, choice)
	if err := p.direct.Patch(b.Context(), p.pkg, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		b.Fatal(err)
	}
	wait.Until(b, limit, "the kinds are served", func() (string, bool) {
		missing, err := p.bare.missing(b.Context(), resources(served))
		return fmt.Sprintf("%d are missing, %v", missing, err), err == nil && missing == 0
	})
}

// resources returns the resources of CRDs.
func resources(crds []string) []schema.GroupResource {
	var out []schema.GroupResource
	for _, name := range crds {
		out = append(out, schema.ParseGroupResource(name))
	}
	return out
}

// definitionsOf returns the definitions of CRDs that are named in a bundle, in the files of which it was made.
func (p *partial) definitionsOf(definitions [][]byte, crds []string) [][]byte {
	var out [][]byte
	for n, f := range p.bundle.files {
		if slices.ContainsFunc(crds, func(crd string) bool { return bytes.Contains(f, []byte("\n  name: "+crd+"\n")) }) {
			out = append(out, definitions[n])
		}
	}
	return out
}

// kindsRows measures a provider of n kinds of which 12 are used, then one more, and all of them if they are few, each
// with the bare client that creates the same CRDs on a new control plane.
func kindsRows(b *testing.B, n int) []row {
	b.Helper()
	definitions := readDefinitions(b, filepath.Join(corpus.Dir(b), largest), n)
	executable := program.Build(b)
	s, stop := newPlane(b)
	defer stop()
	s.program = executable
	p := s.newPartial(b, definitions)
	used := sample(p.names, usedKinds)
	more := p.names[1]
	floor, _ := bareRows(b, p.definitionsOf(definitions, used))
	floorOne, _ := bareRows(b, p.definitionsOf(definitions, []string{more}))
	p.manager = p.start(b)
	read := p.coldRead(b)
	installed := p.meter().measure(b, n, fmt.Sprintf("xpkg: %d of the kinds, until healthy", usedKinds), func() {
		p.activate(b, strings.Join(used, ","), used)
	})
	installed.key, installed.floor = "kinds-used", floor.wall
	installed.goals = []goal{
		wallGoal(installed, time.Duration(usedFactor*float64(floor.wall))+read.wall,
			fmt.Sprintf("%.1f × floor + cold read", usedFactor)),
		writtenGoal(installed, usedKinds+n-len(p.names)), memoryGoal(installed, mostMemory),
	}
	idle := p.meter().measure(b, n, "xpkg: nothing changes", func() { <-time.After(unchangedFor) })
	idle.key = "kinds-idle"
	idle.goals = []goal{{
		what: fmt.Sprintf("no call in %s: %d", unchangedFor, idle.calls.requests()), met: idle.calls.requests() == 0,
	}}
	one := p.meter().measure(b, n, "xpkg: one kind more, until served", func() {
		p.activate(b, strings.Join(append(used, more), ","), []string{more})
	})
	one.key, one.floor = "kinds-one", floorOne.wall
	one.goals = []goal{wallGoal(one, floorOne.wall+oneKindMore, "floor + "+oneKindMore.String()), writtenGoal(one, 1)}
	p.manager.Stop(b)
	floor.key, floorOne.key = "bare-kinds-used", "bare-kinds-one"
	return []row{floor, read, installed, idle, floorOne, one}
}

// writtenGoal bounds the writes of CRDs.
func writtenGoal(r row, n int) goal {
	written := r.calls.count(func(c call) bool {
		return c.resource == "customresourcedefinitions" && c.verb != verbGet && c.verb != verbList && c.verb != verbWatch
	})
	return goal{
		what: fmt.Sprintf("writes of CRDs at most %d: %d (%d calls in all)", n, written, r.calls.requests()), met: written <= n,
	}
}

// knownRows measures the manager with providers that offer many kinds, of which few are active.
func knownRows(b *testing.B) []row {
	b.Helper()
	const each = 2000
	definitions := readDefinitions(b, filepath.Join(corpus.Dir(b), largest), each)
	s, stop := newPlane(b)
	defer stop()
	s.program = program.Build(b)
	var all []*partial
	for range knownKinds / each {
		all = append(all, s.newPartial(b, definitions))
	}
	first := all[0]
	first.manager = first.start(b)
	r := first.meter().measure(b, knownKinds, fmt.Sprintf("xpkg: %d providers, %d active kinds", len(all), activeKinds), func() {
		for _, p := range all {
			p.manager = first.manager
			used := sample(p.names, activeKinds/len(all))
			p.activate(b, strings.Join(used, ","), used)
		}
	})
	r.key = "kinds-known"
	r.goals = []goal{memoryGoal(r, mostMemory)}
	idle := first.meter().measure(b, knownKinds, "xpkg: nothing changes", func() { <-time.After(unchangedFor) })
	idle.key = "kinds-known-idle"
	idle.goals = []goal{memoryGoal(idle, mostKnownMemory)}
	first.manager.Stop(b)
	return []row{r, idle}
}
