package controller

import (
	"context"
	"errors"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/reservations"
	"github.com/xpkg-dev/xpkg/internal/keyedmutex"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// programs are those who run the programs of packages.
type programs struct {
	choice runtime.Choice
	// runtimes has an entry for each name that the choice uses, but for None.
	runtimes map[runtime.Name]runtime.Runtime
	// locks lets one reconciliation at a time change the runtimes of a package.
	locks keyedmutex.Mutex[reservations.Key]
	// changes gives the names of revisions whose processes have changed; nil when there
	// are no processes.
	changes <-chan string
}

// hasProgram reports whether packages of a kind have a program.
func hasProgram(kind string) bool { return v1.NewPackage(kind).RuntimeSpec() != nil }

// of is who runs the program of a package, or nil when nobody does.
func (p *programs) of(kind, name string) runtime.Runtime { return p.runtimes[p.choice.Of(kind, name)] }

// end ends the program of a revision that is gone.
func (p *programs) end(ctx context.Context, kind, revision string) error {
	if !hasProgram(kind) {
		return nil
	}
	owner := plan.Owner{APIVersion: v1.GroupVersion.String(), Kind: v1.RevisionKind(kind), Name: revision}
	var all []error
	for _, name := range p.used() {
		_, err := p.runtimes[name].Stop(ctx, owner)
		all = append(all, err)
	}
	return errors.Join(all...)
}

// endAll ends all programs of a package that is gone. Those of its revisions that are
// garbage but still there are not started again: that they belong to a package is
// looked up before.
func (p *programs) endAll(ctx context.Context, key reservations.Key) error {
	if !hasProgram(key.Kind) {
		return nil
	}
	leave, err := p.locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer leave()
	who := plan.Requester{Package: plan.Owner{APIVersion: v1.GroupVersion.String(), Kind: key.Kind, Name: key.Name}}
	var all []error
	for _, name := range p.used() {
		_, err := stopOthers(ctx, p.runtimes[name], who)
		all = append(all, err)
	}
	return errors.Join(all...)
}

// used are the runtimes that are in use, in a fixed order.
func (p *programs) used() []runtime.Name {
	var out []runtime.Name
	for _, name := range runtime.Names() {
		if p.runtimes[name] != nil {
			out = append(out, name)
		}
	}
	return out
}

// stopOthers ends the programs of the other revisions of a package, and names the
// first one of which something is left.
func stopOthers(ctx context.Context, by runtime.Runtime, who plan.Requester) (left string, err error) {
	others, err := by.Others(ctx, who)
	if err != nil {
		return "", err
	}
	return stopAll(ctx, by, others)
}

// stopAll ends the programs of some revisions, and names the first one of which
// something is left.
func stopAll(ctx context.Context, by runtime.Runtime, revisions []plan.Owner) (left string, err error) {
	var all []error
	for _, o := range revisions {
		gone, err := by.Stop(ctx, o)
		all = append(all, err)
		if !gone && left == "" {
			left = o.Name
		}
	}
	return left, errors.Join(all...)
}
