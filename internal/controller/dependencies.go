package controller

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Failures of dependencies.
var (
	ErrDependencyMissing = errcode.Code{
		Name: "DependencyMissing", Class: errcode.Conflict,
		Cause: "A package that this one depends on is not installed.",
		Fix:   "Wait: the package manager installs what the message names, and says so when it cannot.",
	}
	ErrDependencyVersion = errcode.Code{
		Name: "DependencyVersion", Class: errcode.Conflict,
		Cause: "A package that this one depends on is installed at a version that it does not accept.",
		Fix:   "Move the dependency to a version within the constraint that the message names, with `xpkg update`; or let the package manager do so, with its flag --dependency-upgrades.",
	}
	ErrDependencyComing = errcode.Code{
		Name: "DependencyComing", Class: errcode.Unhealthy,
		Cause: "A package that this one depends on is on its way to a version that it accepts, and is not there yet.",
		Fix:   "Wait: it goes on by itself. If the message says why the dependency does not get on, mend that.",
	}
)

// dependencies checks that everything the package directly depends on is there at a
// version that it accepts, and counts it in the status. What is not there is installed,
// and what does not fit is moved, where that is wanted; the revision waits for it. Of
// what is optional, only what is there counts.
func (r *revisionReconciler) dependencies(ctx context.Context, log *slog.Logger, f family, meta xpkg.Meta) error {
	found{}.count(f.rev.RevisionStatus(), 0)
	needs := lockfile.Dependencies(meta.Dependencies())
	if f.rev.RevisionSpec().SkipDependencyResolution || len(needs) == 0 {
		return nil
	}
	// From now on a package that comes makes this one look again.
	r.needs.Add(f.rev.RevisionSpec().Digest, meta)
	g, err := r.graph(ctx, f, meta)
	if err != nil {
		return err
	}
	found := r.lookAt(ctx, g.Check(needs))
	found.count(f.rev.RevisionStatus(), len(meta.DependsOn))
	if !graph.WasHealthy(f.pkg, f.rev.GetName()) {
		if err := g.CheckCycle(r.kind, f.pkg.GetName()); err != nil {
			return err
		}
	}
	if len(found.missing)+len(found.unfit) > 0 {
		moved, err := r.settle(ctx, log, wanting{f, meta, len(found.missing) > 0}, g)
		if err != nil {
			return err
		}
		if len(moved) > 0 {
			// The cache does not know of it yet.
			return coming(moved)
		}
	}
	switch {
	case len(found.missing) > 0 && r.settling != nil:
		// The cache does not know of what was made, either.
		return coming(installing(found.missing))
	case len(found.missing) > 0:
		return ErrDependencyMissing.New(errors.New(strings.Join(found.missing, ", ")), "%s of %d not installed", wording.Count(len(found.missing), "dependency"), len(meta.DependsOn))
	case len(found.unfit) > 0:
		return ErrDependencyVersion.New(errors.New(strings.Join(found.unfit, "; ")), "dependencies at a version that does not fit")
	case len(found.coming) > 0:
		return coming(found.coming)
	}
	return nil
}

// installing says of dependencies that they are.
func installing(missing []string) []string {
	var out []string
	for _, m := range missing {
		out = append(out, m+" is being installed")
	}
	return out
}

func coming(what []string) error {
	return ErrDependencyComing.New(errors.New(strings.Join(what, "; ")), "%s on the way", wording.Count(len(what), "dependency"))
}
