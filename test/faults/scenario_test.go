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

// scenario is what a person does with a package of one kind.
type scenario struct {
	name   string
	kind   string
	manual bool
	// versions are those in the registry.
	versions []string
	// pulls says that the faults of registries are tried, too.
	pulls bool
	// prepare leads to the state before; act is what is tested.
	prepare []stage
	act     stage
	// undo leads from the state after back to the state before, and adds as much
	// to the numbers of revisions. Without it each package is used once.
	undo *stage
	adds int64
	// meanwhile is what somebody else does at one of the calls. Without it, each of
	// the calls is struck by each fault.
	meanwhile *stage
	// bothActive says that the act itself makes two revisions active.
	bothActive bool
	// collects says that an old revision is taken away, and removes that everything
	// is.
	collects, removes bool
	// never are the objects that may at no time exist.
	never []string
}

// stage is something that a person does, and what comes of it.
type stage struct {
	do   func(context.Context, *stand, *round) error
	then ending
}

// ending gives the states, any of which is right.
type ending func(*round) []state

// end is what comes of the scenario.
func (sc *scenario) end() ending {
	if sc.meanwhile != nil {
		return sc.meanwhile.then
	}
	return sc.act.then
}

// round is one package that a scenario is played with.
type round struct {
	name string
	// host is the registry of the round: what happens at one registry must not
	// touch the packages of the others.
	host     string
	scenario *scenario
	// base is what is added to the numbers of revisions.
	base int64
	// contents are the versions of the objects that were looked at.
	contents map[string]string
}

func (r *round) group() string { return r.name + ".test" }

func (r *round) repository() string { return "/faults/" + r.name }

func (r *round) ref(version string) string {
	return r.host + r.repository() + ":" + version + ".0.0"
}

// version is that of a reference.
func (r *round) version(ref string) string {
	tag, _ := strings.CutPrefix(ref, r.host+r.repository()+":")
	return strings.TrimSuffix(tag, ".0.0")
}

func (r *round) key() client.ObjectKey { return client.ObjectKey{Name: r.name} }

// install is what creates the package.
func install(ctx context.Context, s *stand, r *round) error {
	p := v1.NewPackage(r.scenario.kind)
	p.SetName(r.name)
	p.PackageSpec().Package = r.ref("v1")
	if r.scenario.manual {
		p.PackageSpec().RevisionActivationPolicy = v1.ManualActivation
	}
	return s.client.Create(ctx, p)
}

func remove(ctx context.Context, s *stand, r *round) error {
	p := v1.NewPackage(r.scenario.kind)
	p.SetName(r.name)
	return client.IgnoreNotFound(s.client.Delete(ctx, p))
}

// upgrade makes the package ask for another version.
func upgrade(version string) func(context.Context, *stand, *round) error {
	return func(ctx context.Context, s *stand, r *round) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			p := v1.NewPackage(r.scenario.kind)
			if err := s.client.Get(ctx, r.key(), p); err != nil {
				return err
			}
			p.PackageSpec().Package = r.ref(version)
			return s.client.Update(ctx, p)
		})
	}
}

// set sets the state of the revision of a version by hand.
func set(version string, to v1.RevisionState) func(context.Context, *stand, *round) error {
	return func(ctx context.Context, s *stand, r *round) error {
		for _, rev := range s.witness.view(r).revisions {
			if r.version(rev.RevisionSpec().Image) == version {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"desiredState":"`+string(to)+`"}}`))
				return s.client.Patch(ctx, rev.DeepCopyObject().(client.Object), patch)
			}
		}
		return fmt.Errorf("there is no revision of %s", version)
	}
}

// part is one revision in the state that a scenario expects.
type part struct {
	version string
	number  int64
	active  bool
	// never says that the revision was not active yet: it owns what is there and
	// brings nothing.
	never bool
	// collected says that the revision is gone. What it brought stays.
	collected bool
}

// inactive is a package whose newest revision a person is to activate.
const inactive condition = "False InactivePackageRevision"

// whole gives the state of a package with these revisions, in the order in which
// they were activated. The conditions are those of a package that is well.
func (r *round) whole(wanted string, parts ...part) state {
	s := state{
		Package:   &packageState{Wanted: wanted, Current: wanted, Resolved: true, Installed: inactive, Healthy: "True", Ready: inactive},
		Revisions: map[string]revisionState{}, Objects: map[string]objectState{},
	}
	for _, p := range parts {
		rev := revisionState{State: v1.RevisionInactive, Number: p.number, Healthy: "True", Ready: "True", Owners: []string{"package*"}}
		if p.number > 0 {
			rev.Number += r.base
		}
		if p.active {
			rev.State = v1.RevisionActive
			if p.version == wanted {
				s.Package.Installed, s.Package.Ready = "True", "True"
			}
		}
		for _, what := range r.brings(p.version) {
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
			if owner := p.owner(); owner != "" {
				o.Owners = append(o.Owners, owner)
				slices.Sort(o.Owners)
			}
			s.Objects[what] = o
		}
		if !p.collected {
			s.Revisions[p.version] = rev
		}
	}
	return s
}

// owner is the revision among the owners of its objects.
func (p part) owner() string {
	switch {
	case p.collected:
		return ""
	case p.active:
		return p.version + "*"
	}
	return p.version
}

// brings lists the objects of a version, without those that another package holds.
func (r *round) brings(version string) []string {
	var out []string
	for _, t := range things(r.scenario.kind, r.group(), version) {
		if what, group, _ := strings.Cut(t.name, "."); group == r.group() {
			out = append(out, what)
		}
	}
	slices.Sort(out)
	return out
}
