package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// Failures of dependencies.
var (
	ErrDependencyMissing = failure.Register(failure.Code{
		Name: "DependencyMissing", Class: failure.Conflict,
		Cause: "A package that this one depends on is not installed.",
		Fix:   "Install the packages that the message names; the install then continues by itself.",
	})
	ErrDependencyVersion = failure.Register(failure.Code{
		Name: "DependencyVersion", Class: failure.Conflict,
		Cause: "A package that this one depends on is installed at a version that it does not accept.",
		Fix:   "Install a version of the dependency within the constraint that the message names.",
	})
)

// dependencies checks that everything the package directly depends on is
// installed at a version that it accepts, and counts it in the status. What is not
// there is installed, where that is wanted; the revision waits for it. Of what is
// optional, only what is there counts.
func (r *revisionReconciler) dependencies(ctx context.Context, log *slog.Logger, f family, meta format.Meta) error {
	status := f.rev.RevisionStatus()
	status.FoundDependencies, status.InstalledDependencies, status.InvalidDependencies = 0, 0, 0
	status.AbsentOptionalDependencies = nil
	needs := lockfile.Needs(meta.Dependencies())
	if f.rev.RevisionSpec().SkipDependencyResolution || len(needs) == 0 {
		return nil
	}
	// From now on a package that comes makes this one look again.
	r.needs.learn(f.rev.RevisionSpec().Digest, meta)
	graph, err := r.graph(ctx, f, meta)
	if err != nil {
		return err
	}
	status.FoundDependencies = int64(len(meta.DependsOn))
	var missing, invalid []string
	for _, d := range graph.Check(needs) {
		switch d.State {
		case closure.Off:
			status.AbsentOptionalDependencies = append(status.AbsentOptionalDependencies, d.Need.Package+" "+d.Need.Constraint)
			continue
		case closure.Missing:
			missing = append(missing, strings.TrimSpace(d.Need.Package+" "+d.Need.Constraint))
			continue
		case closure.Unfit:
			status.InvalidDependencies++
			words := "%s is installed at %s, and %s is needed"
			if d.Need.Optional {
				words = "%s is installed at %s, and the package works only with %s"
			}
			invalid = append(invalid, fmt.Sprintf(words, d.Need.Package, d.At.At(), d.Need.Constraint))
		}
		if !d.Need.Optional {
			status.InstalledDependencies++
		}
	}
	if len(missing)+len(invalid) == 0 {
		return nil
	}
	if err := r.settle(ctx, log, f, meta, graph, len(missing) > 0); err != nil {
		return err
	}
	if len(missing) > 0 {
		return ErrDependencyMissing.New(errors.New(strings.Join(missing, ", ")), "%s of %d not installed", count(len(missing), "dependency", "dependencies"), len(meta.DependsOn))
	}
	return ErrDependencyVersion.New(errors.New(strings.Join(invalid, "; ")), "dependencies at a version that does not fit")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// graph is all packages of the cluster with what they need, as far as that is known.
// Of the package of a revision, that is what the revision needs.
func (r *revisionReconciler) graph(ctx context.Context, f family, meta format.Meta) (*closure.Graph, error) {
	// A revision that another package manager has made does not say its digest.
	content, _ := oci.ParseDigest(f.rev.RevisionSpec().Digest)
	var nodes []closure.Node
	if n, ok := closure.At(f.pkg, content, meta.Dependencies()); ok {
		nodes = append(nodes, n)
	}
	for _, kind := range v1.PackageKinds() {
		list := v1.NewPackageList(kind)
		if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		for _, p := range list.Packages() {
			if keyOf(p) == keyOf(f.pkg) {
				continue
			}
			if n, ok := r.node(ctx, p); ok {
				nodes = append(nodes, n)
			}
		}
	}
	return closure.NewGraph(nodes, func(repository string) string { return r.place(ctx, repository) }), nil
}

func (w *world) node(ctx context.Context, p v1.Package) (closure.Node, bool) {
	ref, err := oci.ParseReference(p.PackageSpec().Package, oci.ParseOptions{})
	if err != nil {
		return closure.Node{}, false
	}
	return closure.Of(p, w.needs.of(ctx, ref, closure.Content(p).String()))
}

// place is where a repository is really read, after what image configs say.
func (w *world) place(ctx context.Context, repository string) string {
	origin, _, err := w.origins.Locate(ctx, repository+":latest", nil, corev1.PullIfNotPresent)
	if err != nil {
		return repository
	}
	return origin.Ref.Name()
}
