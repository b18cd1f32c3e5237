package faults_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// scenario is an operation on a package of one kind.
type scenario struct {
	name   string
	kind   string
	manual bool
	// versions lists the versions in the registry.
	versions []string
	// pulls enables the faults of registries.
	pulls bool
	// prepare leads to the initial state; act is the operation under test.
	prepare []step
	act     step
	// undo returns from the outcome to the initial state, and adds adds to the numbers of
	// revisions. Without it each package is used once.
	undo *step
	adds int64
	// meanwhile is an operation that runs at one of the calls. Without it, each call gets each
	// fault.
	meanwhile *step
	// bothActive permits two active revisions.
	bothActive bool
	// collects permits the deletion of an old revision, and removes the deletion of everything.
	collects, removes bool
	// never lists objects that must never exist.
	never []string
}

// step is an operation and its outcomes.
type step struct {
	do   func(context.Context, *suite, *instance) error
	then outcomes
}

// outcomes returns the valid states after a step.
type outcomes func(*instance) []state

// end returns the outcomes of the scenario.
func (sc *scenario) end() outcomes {
	if sc.meanwhile != nil {
		return sc.meanwhile.then
	}
	return sc.act.then
}

// instance is one package that runs a scenario.
type instance struct {
	name string
	// host is the registry of the instance: a fault of one registry must not affect other
	// instances.
	host     string
	scenario *scenario
	// base is added to the numbers of revisions.
	base int64
	// contents caches the versions of objects.
	contents map[string]string
}

func (r *instance) group() string { return r.name + ".test" }

func (r *instance) repository() string { return "/faults/" + r.name }

func (r *instance) ref(version string) string {
	return r.host + r.repository() + ":" + version + ".0.0"
}

// version returns the version of a reference.
func (r *instance) version(ref string) string {
	tag, _ := strings.CutPrefix(ref, r.host+r.repository()+":")
	return strings.TrimSuffix(tag, ".0.0")
}

func (r *instance) key() client.ObjectKey { return client.ObjectKey{Name: r.name} }

// install creates the package.
func install(ctx context.Context, s *suite, r *instance) error {
	p := v1.NewPackage(r.scenario.kind)
	p.SetName(r.name)
	p.PackageSpec().Package = r.ref("v1")
	if r.scenario.manual {
		p.PackageSpec().RevisionActivationPolicy = v1.ManualActivation
	}
	return s.Client.Create(ctx, p)
}

func remove(ctx context.Context, s *suite, r *instance) error {
	p := v1.NewPackage(r.scenario.kind)
	p.SetName(r.name)
	return client.IgnoreNotFound(s.Client.Delete(ctx, p))
}

// upgrade returns a step that requests another version.
func upgrade(version string) func(context.Context, *suite, *instance) error {
	return func(ctx context.Context, s *suite, r *instance) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			p := v1.NewPackage(r.scenario.kind)
			if err := s.Client.Get(ctx, r.key(), p); err != nil {
				return err
			}
			p.PackageSpec().Package = r.ref(version)
			return s.Client.Update(ctx, p)
		})
	}
}

// set returns a step that sets the desired state of the revision of a version.
func set(version string, to v1.RevisionState) func(context.Context, *suite, *instance) error {
	return func(ctx context.Context, s *suite, r *instance) error {
		for _, rev := range s.observer.snapshot(r).revisions {
			if r.version(rev.RevisionSpec().Image) == version {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"desiredState":"`+string(to)+`"}}`))
				return s.Client.Patch(ctx, rev.DeepCopyObject().(client.Object), patch)
			}
		}
		return fmt.Errorf("there is no revision of %s", version)
	}
}

// revisionPart describes one revision in an expected state.
type revisionPart struct {
	version string
	number  int64
	active  bool
	// never marks a revision that was never active and has created no objects.
	never bool
	// collected marks a revision that is deleted. Its objects stay.
	collected bool
}

// inactive is the condition of a package whose newest revision awaits manual activation.
const inactive condition = "False InactivePackageRevision"

// stateOf returns the state of a healthy package with these revisions, in the order of their
// activation.
func (r *instance) stateOf(wanted string, parts ...revisionPart) state {
	s := state{
		Package: &packageState{
			Wanted: wanted, Current: wanted, Resolved: true, Installed: inactive, Healthy: "True", Ready: inactive,
		},
		Revisions: map[string]revisionState{}, Objects: map[string]objectState{},
	}
	for _, p := range parts {
		rev := revisionState{State: v1.RevisionInactive, Number: p.number, Healthy: "True", Ready: "True", Owners: []string{
			"package*",
		}}
		if p.number > 0 {
			rev.Number += r.base
		}
		if p.active {
			rev.State = v1.RevisionActive
			if p.version == wanted {
				s.Package.Installed, s.Package.Ready = "True", "True"
			}
		}
		for _, what := range r.objectNames(p.version) {
			o, exists := s.Objects[what]
			if p.never && !exists {
				continue
			}
			if !exists {
				o.Owners = []string{"package"}
			}
			if !p.never {
				o.Content = p.version
				rev.Objects = append(rev.Objects, what)
			}
			if p.active {
				o.Owners = []string{"package*"}
			}
			s.Objects[what] = o
		}
		if !p.collected {
			s.Revisions[p.version] = rev
		}
	}
	return s
}

// objectNames returns the objects of a version, except for objects of another package.
func (r *instance) objectNames(version string) []string {
	var out []string
	for _, t := range objectsOf(r.scenario.kind, r.group(), version) {
		if what, group, _ := strings.Cut(t.name, "."); group == r.group() {
			out = append(out, what)
		}
	}
	slices.Sort(out)
	return out
}
