package bench_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// The numbers of packages, and of those that cannot be installed.
const manyPackages, badPackages = 200, 10

const providersPath = "/apis/pkg.crossplane.io/v1/providers"

// fleet are many packages, most of which contain one CRD.
type fleet struct {
	*suite
	packages []*v1.Provider
	kinds    []schema.GroupResource
	manager  *program.Manager
	cache    string
}

// newFleet publishes the packages. The bad ones come first.
func (s *suite) newFleet(b *testing.B) *fleet {
	b.Helper()
	f := &fleet{suite: s, cache: b.TempDir()}
	for n := range manyPackages {
		name := fmt.Sprintf("fleet-%03d", n)
		p := &v1.Provider{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: v1.ProviderKind},
			ObjectMeta: metav1.ObjectMeta{Name: name},
		}
		switch {
		case n < badPackages/2:
			p.Spec.Package = s.registry + "/fleet/without-" + name + ":v1.0.0"
		case n < badPackages:
			p.Spec.Package = "127.0.0.1:1/fleet/unreachable-" + name + ":v1.0.0"
		default:
			p.Spec.Package = f.publish(b, name, "v1.0.0").String()
			f.kinds = append(f.kinds, schema.GroupResource{Group: name + ".fleet.test", Resource: "things"})
		}
		f.packages = append(f.packages, p)
	}
	return f
}

// publish publishes a version of a package with one CRD.
func (f *fleet) publish(b *testing.B, name, version string) fmt.Stringer {
	b.Helper()
	stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: " + name + "}\n" +
		publish.Definition(name+".fleet.test", "Thing", "Version "+version)
	return publish.Stream(b, f.registry, "fleet/"+name, version, []byte(stream))
}

// start starts the manager, which installs the API of packages.
func (f *fleet) start(b *testing.B) {
	b.Helper()
	f.manager = program.Start(b, f.program, f.kubeconfig, f.cache)
}

func (f *fleet) meter() meter {
	return meter{proxy: f.proxy, server: f.server, client: f.manager.PID()}
}

// manyRows measures 200 packages that are created at once, and the manager with them. The floor creates the same
// packages, a revision and the CRD of each, and writes each status once: one package after the other, so that its times
// are the sums of the floors of the packages. Two other floors create all packages at once, for comparison; the second
// one also makes the other writes that users see: the roles that give them access to the kinds of each package, and its
// event.
func manyRows(b *testing.B, executable string) (rows []row, f *fleet, stop func()) {
	b.Helper()
	var s *suite
	var alone, together, visible, installs []row
	for {
		alone, together, visible = append(alone, fleetFloor(b, executable, oneByOne)),
			append(together, fleetFloor(b, executable, atOnce)), append(visible, fleetFloor(b, executable, withRoles))
		s, stop = newPlane(b)
		s.program = executable
		f = s.newFleet(b)
		f.start(b)
		installs = append(installs, f.meter().measure(b, manyPackages, "xpkg: 200 packages at once, ten of them bad", func() {
			f.createAll(b, s.bare)
			f.untilSettled(b)
		}))
		if isEnough(manyPackages, alone) {
			break
		}
		f.manager.Stop(b)
		stop()
	}
	floor, all, written, installed := fastest(alone), fastest(together), fastest(visible), fastest(installs)
	installed.key, installed.floor, floor.floor = "packages", floor.wall, floor.wall
	installed.goals = fleetGoals(installed, floor, all, written)
	// The unreachable packages are retried in intervals, which would count as calls.
	for _, p := range f.packages[:badPackages] {
		if err := s.direct.Delete(b.Context(), p); err != nil {
			b.Fatal(err)
		}
	}
	f.packages = f.packages[badPackages:]
	return append([]row{floor, all, written, installed}, f.unchangedRows(b)...), f, stop
}

// fleetGoals returns the goals of an install of all packages. Their floor is the sum of the floors of the packages; the
// other floors create all packages at once, with and without the other writes that users see.
func fleetGoals(r, floor, atOnce, visible row) []goal {
	const most = 1.3
	wall, server := r.ratio(r.wall, floor, floor.wall), r.ratio(r.server, floor, floor.server)
	return []goal{
		{
			what: fmt.Sprintf(
				"wall at most %.2f × the sum of the floors: %.2f; of all at once: %.2f", most, wall,
				r.ratio(r.wall, atOnce, atOnce.wall),
			),
			met: wall <= most, noise: max(r.noise, floor.noise), relative: true,
		},
		{
			what: fmt.Sprintf("server CPU at most %.2f × the sum of the floors: %.2f; of all at once: %.2f, with roles and events: %.2f", most, server,
				r.ratio(r.server, atOnce, atOnce.server), r.ratio(r.server, visible, visible.server)),
			met: server <= most,
		},
		callsGoal(r),
		memoryGoal(r, mostMemory),
	}
}

// callsGoal bounds the calls of the manager: for each installed package a revision, a CRD, two roles for users, an
// event, the status of the revision, and two of the package; for each other package an event and a status. Reads are
// shared.
func callsGoal(r row) goal {
	const installed, failed, shared = 8, 2, 150
	n, most := r.calls.requests(), installed*(manyPackages-badPackages)+failed*badPackages+shared
	return goal{what: fmt.Sprintf("at most %d calls: %d", most, n), met: n <= most}
}

// unchangedRows measures the manager with all packages when nothing or one package changes.
func (f *fleet) unchangedRows(b *testing.B) []row {
	b.Helper()
	i := &install{suite: f.suite, size: manyPackages, cache: f.cache, manager: f.manager}
	last := f.packages[len(f.packages)-1]
	annotated := f.meter().react(b, manyPackages, "xpkg: one of 200 packages is annotated", func() { i.annotate(b, last) })
	restarted := i.restart(b)
	f.manager = i.manager
	restarted.what = "xpkg: the manager of 200 packages is restarted"
	next := f.publish(b, last.Name, "v2.0.0")
	upgraded := f.meter().measure(b, manyPackages, "xpkg: one of 200 packages is upgraded", func() {
		patch := fmt.Appendf(nil, `{"spec":{"package":%q}}`, next)
		if err := f.bare.call(b.Context(), http.MethodPatch, providersPath+"/"+
			last.Name, metadataOnly, patch, nil); err != nil {
			b.Fatal(err)
		}
		last.Spec.Package = next.String()
		i.untilHealthy(b, last)
	})
	others := upgraded.calls.count(func(c call) bool {
		return c.verb != verbWatch && c.name != "" && (c.resource == "providers" || c.resource == "providerrevisions") &&
			c.name != last.Name && !isRevisionOf(c.name, last.Name)
	})
	annotated.key, restarted.key, upgraded.key = "packages-annotate", "packages-restart", "packages-unrelated"
	annotated.goals, restarted.goals = unchangedGoals(annotated), unchangedGoals(restarted)
	upgraded.goals = []goal{
		{what: fmt.Sprintf("no call for the other packages: %d", others), met: others == 0}, memoryGoal(upgraded, mostMemory),
	}
	return []row{annotated, restarted, upgraded}
}

func isRevisionOf(name, pkg string) bool { return len(name) > len(pkg) && name[:len(pkg)+1] == pkg+"-" }

// createAll creates all packages.
func (f *fleet) createAll(b *testing.B, c bareClient) {
	b.Helper()
	if err := each(f.packages, func(p *v1.Provider) error { return f.create(b, c, p) }); err != nil {
		b.Fatal(err)
	}
}

// create creates a package.
func (f *fleet) create(b *testing.B, c bareClient, p *v1.Provider) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return c.call(b.Context(), http.MethodPost, providersPath, metadataOnly, raw, nil)
}

// untilSettled waits until the good packages are healthy and the others report their failure. It watches the packages:
// repeated lists would be a load for the API server.
func (f *fleet) untilSettled(b *testing.B) {
	b.Helper()
	events, err := f.direct.Watch(b.Context(), &v1.ProviderList{})
	if err != nil {
		b.Fatal(err)
	}
	defer events.Stop()
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	settled := map[string]bool{}
	for len(settled) < manyPackages {
		select {
		case event, open := <-events.ResultChan():
			p, ok := event.Object.(*v1.Provider)
			if !open || !ok {
				b.Fatalf("the watch ended: %v", event)
			}
			ready := p.GetCondition(v1.TypeReady)
			if p.GetCondition(v1.TypeHealthy).Status == corev1.ConditionTrue ||
				ready.Status == corev1.ConditionFalse && p.Name < f.packages[badPackages].Name && ready.Message != "" {
				settled[p.Name] = true
			}
		case <-timeout.C:
			b.Fatalf("%d packages have settled", len(settled))
		}
	}
}

// fleetWrites are the ways in which the bare client creates the objects of all packages.
type fleetWrites int

const (
	// oneByOne creates one package after the other, each when the API server serves the CRD of the one before.
	oneByOne fleetWrites = iota
	// atOnce creates all packages, and then their objects, concurrently.
	atOnce
	// withRoles is like atOnce, with the roles of users and an event for each package.
	withRoles
)

// fleetFloor creates the objects of all packages with the bare client.
func fleetFloor(b *testing.B, executable string, writes fleetWrites) row {
	b.Helper()
	s, stop := newPlane(b)
	defer stop()
	s.program = executable
	f := s.newFleet(b)
	f.start(b)
	f.manager.Stop(b)
	c := newBareClient(b, s.proxy.config())
	m := meter{proxy: s.proxy, server: s.server}
	what, key := "bare client: 200 packages, 190 revisions and CRDs, statuses", "bare-packages"
	switch writes {
	case oneByOne:
		what, key = what+", one after the other", key+"-alone"
	case withRoles:
		what, key = what+", roles, events", key+"-visible"
	}
	floor := m.measure(b, manyPackages, what, func() {
		if writes == oneByOne {
			f.createAlone(b, c)
			return
		}
		f.createAll(b, c)
		err := each(f.packages, func(p *v1.Provider) error {
			if writes == withRoles {
				if err := f.recordVisible(b, c, p); err != nil {
					return err
				}
			}
			return f.establish(b, c, p)
		})
		if err != nil {
			b.Fatal(err)
		}
		f.untilServed(b, c, f.kinds)
	})
	floor.key, floor.floor = key, floor.wall
	return floor
}

// createAlone creates the objects of one package after the other.
func (f *fleet) createAlone(b *testing.B, c bareClient) {
	b.Helper()
	for i, p := range f.packages {
		if err := f.create(b, c, p); err != nil {
			b.Fatal(err)
		}
		if err := f.establish(b, c, p); err != nil {
			b.Fatal(err)
		}
		if f.isGood(p) {
			f.untilServed(b, c, f.kinds[i-badPackages:][:1])
		}
	}
}

// untilServed waits until discovery lists all kinds.
func (f *fleet) untilServed(b *testing.B, c bareClient, kinds []schema.GroupResource) {
	b.Helper()
	for {
		missing, err := c.missing(b.Context(), kinds)
		if err != nil {
			b.Fatal(err)
		}
		if missing == 0 {
			return
		}
		<-time.After(pollInterval)
	}
}

// isGood reports whether the content of a package can be read.
func (f *fleet) isGood(p *v1.Provider) bool { return p.Name >= f.packages[badPackages].Name }

// recordVisible creates the event of a package, and the roles of users for its kinds; only the event of a bad one.
func (f *fleet) recordVisible(b *testing.B, c bareClient, p *v1.Provider) error {
	if f.isGood(p) {
		set := rbac.Derive(rbac.Input{
			Kind: rbac.Provider, Revision: p.Name + "-1", NoRuntime: true,
			Defined: []schema.GroupResource{{Group: p.Name + ".fleet.test", Resource: "things"}},
		})
		for _, role := range set.ClusterRoles {
			raw, err := json.Marshal(role)
			if err != nil {
				return err
			}
			if err := c.call(
				b.Context(), http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/clusterroles", metadataOnly, raw, nil,
			); err != nil {
				return err
			}
		}
	}
	raw, err := json.Marshal(eventsv1.Event{
		TypeMeta:            metav1.TypeMeta{APIVersion: eventsv1.SchemeGroupVersion.String(), Kind: "Event"},
		ObjectMeta:          metav1.ObjectMeta{GenerateName: p.Name + "-"},
		EventTime:           metav1.NowMicro(),
		ReportingController: "bare", ReportingInstance: "bare", Action: "Reconcile", Reason: "Ready",
		Type:      corev1.EventTypeNormal,
		Regarding: corev1.ObjectReference{APIVersion: v1.GroupVersion.String(), Kind: v1.ProviderKind, Name: p.Name},
		Note:      p.Name + " is healthy",
	})
	if err != nil {
		return err
	}
	return c.call(b.Context(), http.MethodPost, "/apis/events.k8s.io/v1/namespaces/default/events", metadataOnly, raw, nil)
}

// establish writes the revision, the CRD and the statuses of a package; only the status of a bad one.
func (f *fleet) establish(b *testing.B, c bareClient, p *v1.Provider) error {
	status := []byte(
		`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Ready","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
	)
	patch := func(path string) error {
		return c.call(b.Context(), http.MethodPatch, path+"/status", metadataOnly, status, nil)
	}
	if f.isGood(p) {
		rev := fmt.Sprintf(
			`{"apiVersion":"pkg.crossplane.io/v1","kind":"ProviderRevision","metadata":{"name":"%s-1"},"spec":{"desiredState":"Active","image":%q,"revision":1}}`,
			p.Name, p.Spec.Package,
		)
		definition := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.%[1]s"},"spec":{"group":%[1]q,"scope":"Cluster",
"names":{"kind":"Thing","plural":"things","singular":"thing","listKind":"ThingList"},"versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}`, p.Name+".fleet.test")
		if err := c.call(
			b.Context(), http.MethodPost, "/apis/pkg.crossplane.io/v1/providerrevisions", metadataOnly, []byte(rev), nil,
		); err != nil {
			return err
		}
		if err := c.call(b.Context(), http.MethodPost, definitionsPath, metadataOnly, []byte(definition), nil); err != nil {
			return err
		}
		if err := patch("/apis/pkg.crossplane.io/v1/providerrevisions/" + p.Name + "-1"); err != nil {
			return err
		}
	}
	return patch(providersPath + "/" + p.Name)
}
