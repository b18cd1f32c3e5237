package planner

import (
	"context"
	"fmt"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// allowAdoption changes p so that it may adopt all objects of users that it contains, if
// AdoptObjects is set. It returns the objects that p could not adopt before.
func (pl *Planner) allowAdoption(ctx context.Context, p v1.Package, pkg *xpkg.Package) (adopted []string, err error) {
	if !pl.AdoptObjects {
		return nil, nil
	}
	objects, err := desired.Of(pkg, desired.Options{Package: p.GetName()})
	if err != nil {
		return nil, err
	}
	live, err := pl.Cluster.Metadata(ctx, objects.Refs())
	if err != nil {
		return nil, err
	}
	for _, r := range plan.Establish(objects.Desired(), live, nil, revision.Requester(p, p.NewRevision(), nil)).Refusals {
		if r.Cause == plan.NeedsAdoption {
			adopted = append(adopted, r.Ref.ObjectName())
		}
	}
	if len(adopted) > 0 {
		revision.AllowAdoption(p, adopted)
	}
	return adopted, nil
}

// explainAdoption adds to refusals the command that applies the plan and adopts the objects.
func (p *Plan) explainAdoption() {
	command := fmt.Sprintf("xpkg update %s %s --adopt", p.Package.Short(), p.Package.To.Reference)
	if p.Operation == Install {
		command = fmt.Sprintf("xpkg install %s %s %s --adopt", strings.ToLower(p.Package.Kind), p.Package.To.Reference, p.Package.Name)
	}
	for i := range p.Objects.Refusals {
		if r := &p.Objects.Refusals[i]; r.Cause == plan.NeedsAdoption {
			r.Fix = "review the objects, and run `" + command + "` to let the package adopt them, or delete them"
		}
	}
}
