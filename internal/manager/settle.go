package manager

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/resolve"
)

// ErrDependencyName is the failure of a dependency for which there is no name.
var ErrDependencyName = failure.Register(failure.Code{
	Name: "DependencyName", Class: failure.Conflict,
	Cause: "A package that another one needs cannot be installed, since packages of another repository have both names that it could have.",
	Fix:   "Install the dependency yourself under a name of your choice; it is recognized by its repository.",
})

// Dependencies say what is done about what packages need.
type Dependencies struct {
	// Registry is where versions are looked up.
	Registry resolve.Registry
	// Upgrades says what may become of packages that were installed because others
	// need them. Empty means [closure.None].
	Upgrades closure.Policy
	// Removal says what becomes of such packages when nobody needs them any more.
	// Empty means [closure.KeepOrphans].
	Removal closure.Removal
}

// settling is what it takes to give packages what they need.
type settling struct {
	Dependencies
	// turns lets one at a time deal with packages that have to do with each other.
	turns turns
}

func newSettling(d *Dependencies) *settling {
	if d == nil {
		return nil
	}
	return &settling{Dependencies: *d}
}

// settle finds one solution for all packages that have to do with one of them, and
// installs and moves what it takes: all at once. A conflict is told to those whose
// needs are not met, and is nobody else's matter.
//
// Seen is the graph in which something was missing, or did not fit.
func (r *revisionReconciler) settle(ctx context.Context, log *slog.Logger, f family, meta format.Meta, seen *closure.Graph, missing bool) error {
	s := r.settling
	if s == nil || !missing && (s.Upgrades == "" || s.Upgrades == closure.None) {
		return nil
	}
	own, err := component(seen, f.pkg)
	if err != nil {
		return err
	}
	first := own.Nodes()[0]
	leave, err := s.turns.take(ctx, packageKey{first.Kind, first.Name})
	if err != nil {
		return err
	}
	defer leave()
	// Whoever had the turn before may have done it all.
	if seen, err = r.graph(ctx, f, meta); err != nil {
		return err
	}
	if own, err = component(seen, f.pkg); err != nil {
		return err
	}
	result, err := own.Resolver(s.Registry, r.origins, f.pkg).Resolve(ctx, own.Request(s.Upgrades))
	if err != nil {
		return err
	}
	for _, note := range result.Notes {
		log.InfoContext(ctx, "dependencies", "note", note)
	}
	changes := own.Changes(result)
	if len(changes) == 0 {
		return nil
	}
	// Nothing is installed for a package that was just deleted.
	if err := r.stillThere(ctx, f.pkg, v1.NewPackage(r.kind)); err != nil {
		return err
	}
	if err := r.foresee(ctx, f, seen, changes); err != nil {
		return err
	}
	for _, c := range changes {
		if err := r.change(ctx, log, f.pkg, c); err != nil {
			return err
		}
	}
	return nil
}

// component is the graph of the packages that have to do with one of them.
func component(graph *closure.Graph, p v1.Package) (*closure.Graph, error) {
	own := graph.Component(p.PackageKind(), p.GetName())
	if len(own.Nodes()) == 0 {
		// It was deleted, or renamed, meanwhile.
		return nil, errStale
	}
	return own, nil
}

// change makes a package that is needed, or moves one.
func (r *revisionReconciler) change(ctx context.Context, log *slog.Logger, parent v1.Package, c closure.Change) error {
	log = log.With("dependency", c.To.Package, "to", c.To.Name())
	if c.Object != nil {
		return r.move(ctx, log, c)
	}
	p := v1.NewPackage(string(c.To.Kind))
	p.SetLabels(map[string]string{closure.LabelMade: "true"})
	p.SetAnnotations(map[string]string{closure.AnnotationFor: strings.Join(c.For, ", ")})
	p.PackageSpec().Package = closure.Node{Package: c.To}.Reference()
	p.PackageSpec().PackagePullSecrets = closure.Inherited(parent)
	for _, name := range names(c) {
		p.SetName(name)
		p.SetResourceVersion("")
		err := r.client.Create(ctx, p)
		if err == nil {
			log.InfoContext(ctx, "dependency installed", "name", name)
			return nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("install the dependency %s: %w", c.To.Package, err)
		}
		there := v1.NewPackage(string(c.To.Kind))
		if err := r.live.Get(ctx, client.ObjectKey{Name: name}, there); err != nil {
			return client.IgnoreNotFound(err)
		}
		if lockfile.Repository(there.PackageSpec().Package) == c.To.Package {
			return nil // The cache is behind, or it is being deleted; the revision looks again.
		}
	}
	return ErrDependencyName.New(nil, "%s is needed, and the names %s are taken", c.To.Package, strings.Join(names(c), " and "))
}

// names are those that a dependency can have: the one that the field gives it, and
// where packages of another repository have that, one that nobody else has.
func names(c closure.Change) []string {
	name := oci.ToDNSLabel(c.To.Repository().Repository)
	return []string{name, oci.FriendlyID(name, oci.DigestOf([]byte(c.To.Package)).Hex())}
}

// move brings a package that was installed for others to another version. Nobody
// else's is touched.
func (r *revisionReconciler) move(ctx context.Context, log *slog.Logger, c closure.Change) error {
	p := v1.NewPackage(c.Object.Kind)
	if err := r.live.Get(ctx, client.ObjectKey{Name: c.Object.Name}, p); err != nil {
		return client.IgnoreNotFound(err)
	}
	if n, ok := closure.Of(p, nil); !ok || !n.Made || n.Reference() != c.Object.Reference() {
		return nil
	}
	p.PackageSpec().Package = closure.Node{Package: c.To}.Reference()
	if err := r.client.Update(ctx, p); err != nil {
		return fmt.Errorf("move the dependency %s: %w", p.GetName(), err)
	}
	log.InfoContext(ctx, "dependency moved", "name", p.GetName(), "from", c.Object.At())
	return nil
}
