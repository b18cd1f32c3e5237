package packages

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/history"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/generation"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// ErrNoRevision is the code for a rollback without a target revision.
var ErrNoRevision = errcode.Code{
	Name: "RevisionNotFound", Class: errcode.NotFound,
	Cause: "The package has no such revision: revisions beyond spec.revisionHistoryLimit are deleted.",
	Fix:   "List the revisions with `xpkg history`, or install another version with `xpkg update`.",
}

// HistoryCmd implements `xpkg history`.
type HistoryCmd struct {
	Name inventory.Name `arg:"" optional:"" complete:"package" help:"Package, as NAME, KIND/NAME or KIND NAME, or the number of a generation of all packages. Default is all generations."`
	connection.ClusterFlags
	view.ListOutputFlag
}

// Run prints the revisions of a package or the generations of all packages, newest first, or one generation.
func (c *HistoryCmd) Run(env *terminal.Env) error {
	name := string(c.Name)
	if strings.Trim(name, "0123456789") == "" && name != "" {
		name = history.Prefix + name
	}
	number, isGeneration, err := history.Number(name)
	if err != nil {
		return err
	}
	if isGeneration || name == "" {
		return c.generations(env, number)
	}
	_, revisions, err := findRevisions(env.Context, c.ClusterFlags, c.Name)
	if err != nil {
		return err
	}
	views := revisionViews(revisions)
	var names []string
	for _, v := range views {
		names = append(names, v.Name)
	}
	return c.Print(env.Stdout, view.List{Value: views, Names: names, Table: revisionTable(views)})
}

// generations prints the generation with a number, or all of them for 0.
func (c *HistoryCmd) generations(env *terminal.Env, number int64) error {
	cluster, err := c.Client(env.Context)
	if err != nil {
		return err
	}
	all, err := history.Read(env.Context, cluster)
	if err != nil {
		return err
	}
	if number == 0 {
		return c.Print(env.Stdout, history.List(all))
	}
	return history.Show(env.Stdout, view.OutputFlag{Output: view.ObjectFormat(c.Output)}, all, number)
}

// findRevisions returns an installed package and its revisions, newest first.
func findRevisions(
	ctx context.Context, f connection.ClusterFlags, name inventory.Name,
) (v1.Package, []v1.PackageRevision, error) {
	cluster, all, err := selection.Read(ctx, f, inventory.LoadPackages)
	if err != nil {
		return nil, nil, err
	}
	p, err := all.Find(name)
	if err != nil {
		return nil, nil, err
	}
	revisions, err := inventory.ReadRevisions(ctx, cluster, p)
	return p, revisions, err
}

// revisionView is a revision as commands print it.
type revisionView struct {
	Number  int64            `json:"number"`
	Name    string           `json:"name"`
	State   v1.RevisionState `json:"state"`
	Healthy string           `json:"healthy"`
	Package string           `json:"package"`
	Digest  string           `json:"digest,omitempty"`
	Created time.Time        `json:"created"`
}

func revisionViews(revisions []v1.PackageRevision) []revisionView {
	out := []revisionView{}
	for _, rev := range revisions {
		spec, health := rev.RevisionSpec(), revision.HealthOf(rev)
		if spec.Revision == 0 {
			// A revision that was never active has no runtime and no objects that could be healthy.
			health = corev1.ConditionUnknown
		}
		out = append(out, revisionView{
			Number: spec.Revision, Name: rev.GetName(), State: spec.DesiredState, Package: spec.Image, Digest: spec.Digest,
			Healthy: string(health), Created: rev.GetCreationTimestamp().Time,
		})
	}
	return out
}

func revisionTable(revisions []revisionView) view.Table {
	out := view.Table{
		Header: []string{"NUMBER", "REVISION", "STATE", "HEALTHY", "PACKAGE", "DIGEST", "AGE"},
		Least:  []string{"DIGEST", "PACKAGE"},
	}
	for _, r := range revisions {
		// A digest that is not valid is not shown.
		digest, _ := oci.ParseDigest(r.Digest)
		out.Rows = append(out.Rows, []string{
			strconv.FormatInt(r.Number, 10), r.Name, string(r.State), r.Healthy, inventory.ShortenDigests(r.Package),
			digest.Short(), terminal.Age(r.Created, time.Now()),
		})
	}
	return out
}

// rollbackArgs select the package to roll back, and its revision, or a generation of all packages.
type rollbackArgs struct {
	Name         inventory.Name `arg:"" optional:"" complete:"package" help:"Package to roll back, as NAME, KIND/NAME or KIND NAME."`
	Revision     string         `arg:"" optional:"" complete:"revision" help:"Revision to return to, by number, name or tag. Default is the newest healthy revision before the active one from which the package was not rolled back."`
	To           string         `placeholder:"NUMBER|REVISION|TAG" complete:"revision" help:"Revision to return to; the same as the argument."`
	ToGeneration int64          `placeholder:"N" help:"Return all packages to this generation of xpkg history, as one transaction: their contents and settings. Packages that it does not contain are uninstalled."`
	OnDeleteFlag
	consents
	foreseenUpgradesFlag
}

// check returns an error if not exactly one thing is selected.
func (c *rollbackArgs) check() error {
	usage := func(do, what string, args ...any) error {
		return terminal.ErrUsage.New(nil, what, args...).WithDo("%s", do)
	}
	switch {
	case c.ToGeneration < 0:
		return usage("List the generations with `xpkg history`.", "%d is not the number of a generation", c.ToGeneration)
	case c.ToGeneration > 0 && c.Name != "":
		return usage("Omit one of them.", "%s and --to-generation %d cannot be used together", c.Name, c.ToGeneration)
	case c.ToGeneration == 0 && c.Name == "":
		return usage("Name a package, or return all packages to a generation of `xpkg history` with --to-generation.",
			"nothing to roll back is named")
	case c.ToGeneration == 0 && c.OnDelete != (revision.OnDelete{}):
		return usage("Omit it: the rollback of a package deletes none.", "--on-delete is only used with --to-generation")
	case c.Revision != "" && c.To != "":
		return usage("Name the revision once.", "%s and --to %s cannot be used together", c.Revision, c.To)
	case c.ToGeneration > 0 && c.To != "":
		return usage("Omit one of them.", "--to and --to-generation cannot be used together")
	}
	return nil
}

// RollbackCmd implements `xpkg rollback`.
type RollbackCmd struct {
	rollbackArgs
	Wait   time.Duration `short:"w" placeholder:"DURATION" help:"Wait this long, such as 2m, until the package is healthy."`
	DryRun bool          `help:"Show the changes without making them, like xpkg plan rollback."`
	terminal.ConsentFlag
	connection.ClusterFlags
	planFlags
	view.OutputFlag
}

// Run returns a package to a former revision, or all packages to a generation.
func (c *RollbackCmd) Run(env *terminal.Env) error {
	r := review{
		dryRun: c.DryRun, wait: c.Wait, ConsentFlag: c.ConsentFlag, ClusterFlags: c.ClusterFlags, OutputFlag: c.OutputFlag,
	}
	return c.rollBack(env, r, c.planFlags)
}

// rollBack updates a package to the content of a former revision, or all packages to those of a generation.
func (c *rollbackArgs) rollBack(env *terminal.Env, r review, f planFlags) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.ToGeneration > 0 {
		return c.toGeneration(env, r, f)
	}
	p, revisions, err := findRevisions(env.Context, r.ClusterFlags, c.Name)
	if err != nil {
		return err
	}
	if err := inventory.CheckNotDeleting(p); err != nil {
		return err
	}
	target, err := rollbackTarget(p, revisions, cmp.Or(c.Revision, c.To))
	if err != nil {
		return err
	}
	r.one, r.needsPlan, r.verb, r.consents = true, c.given() || r.save != nil, "roll back", c.consents
	return r.change(env, f, func(pl *clusterPlanner, _ *inventory.Inventory) ([]*operation.Step, error) {
		pl.assume(c.foreseenUpgradesFlag, c.consents)
		s := &operation.Step{Live: p, Want: p.DeepCopyObject().(v1.Package), RollsBack: true}
		return []*operation.Step{s}, moveTo(s.Want, contentOf(target))
	})
}

// toGeneration returns all packages to those of a generation, as one transaction.
func (c *rollbackArgs) toGeneration(env *terminal.Env, r review, f planFlags) error {
	r.Atomic, r.needsPlan, r.asksToRemove, r.verb, r.consents = true, true, true, "roll back", c.consents
	err := r.change(env, f, func(pl *clusterPlanner, all *inventory.Inventory) ([]*operation.Step, error) {
		pl.assume(c.foreseenUpgradesFlag, c.consents)
		generations, err := history.Read(env.Context, pl.Client)
		if err != nil {
			return nil, err
		}
		g, err := history.Find(generations, c.ToGeneration)
		if err != nil {
			return nil, err
		}
		steps, err := pl.GenerationSteps(env.Context, all, g)
		if err != nil {
			return nil, err
		}
		for _, s := range steps {
			if s.Remove {
				s.OnDelete = c.OnDelete
			}
		}
		unpin(env, pl, steps, g)
		return steps, nil
	})
	if errors.Is(err, planner.ErrCustomResources) {
		return errcode.From(err).Also("Then roll back again, or answer for all packages that are uninstalled with `%s`.",
			env.CommandWith("--on-delete=orphan"))
	}
	return err
}

// unpin removes the digest from the references of steps that had none in a generation, if their tags refer to it.
func unpin(env *terminal.Env, pl *clusterPlanner, steps []*operation.Step, g generation.Generation) {
	written := map[v1alpha1.PackageName]string{}
	for _, p := range g.Packages {
		written[p.PackageName] = p.Spec.Package
	}
	eachTag(env, pl, steps, func(_ int, s *operation.Step, err error) {
		was := written[v1alpha1.PackageName{Kind: s.Want.PackageKind(), Name: s.Want.GetName()}]
		if err == nil && !strings.Contains(was, "@") {
			s.Want.PackageSpec().Package = was
		}
	})
}

// contentOf returns the reference of the content of a revision, with its digest: because the tag may have
// moved.
func contentOf(rev v1.PackageRevision) string {
	spec := rev.RevisionSpec()
	if spec.Digest == "" || strings.Contains(spec.Image, "@") || isCacheName(spec.Image) {
		return spec.Image
	}
	return spec.Image + "@" + spec.Digest
}

// rollbackTarget returns the revision with the number, name or tag in to. If to is empty, it returns the active
// revision if the requested one waits to be activated, and otherwise the newest revision before the active one that is
// not unhealthy, and from which the package was not rolled back: after a rollback, the previous revision is the one
// that was left. Revisions are sorted, newest first.
func rollbackTarget(p v1.Package, revisions []v1.PackageRevision, to string) (v1.PackageRevision, error) {
	i := slices.IndexFunc(revisions, revision.IsActive)
	if to == "" {
		if i >= 0 && inventory.PendingActivation(p) != "" {
			return revisions[i], nil
		}
		failed := p.PackageStatus().Rollback
		var left v1.PackageRevision
		for _, rev := range revisions[i+1:] {
			wasActive := rev.RevisionSpec().Revision > 0
			// The conditions of a failed revision end with its runtime.
			if !wasActive || revision.HealthOf(rev) == corev1.ConditionFalse || failed != nil && failed.From == rev.GetName() {
				continue
			}
			if i < 0 {
				// With the policy Manual, the manager activates no revision.
				return nil, ErrNoRevision.New(nil, "%s has no active revision", inventory.ShortName(p)).
					WithDo("Activate one with `kubectl patch %srevision %s --type merge -p '{\"spec\":{\"desiredState\":\"Active\"}}'`; `xpkg history %s` lists all.",
						strings.ToLower(p.PackageKind()), rev.GetName(), inventory.ShortName(p))
			}
			if revision.WasRolledBackFrom(p, rev.RevisionSpec().Image) {
				left = cmp.Or(left, rev)
				continue
			}
			return rev, nil
		}
		if left != nil {
			number := left.RevisionSpec().Revision
			return nil, ErrNoRevision.New(nil,
				"%s was rolled back from %s, and has no other revision before the active one that was healthy",
				inventory.ShortName(p), inventory.ShortVersion(left.RevisionSpec().Image)).
				WithDo(
					"To return to it, run `xpkg rollback %s --to %d`; `xpkg history %s` lists all.", inventory.ShortName(p), number,
					inventory.ShortName(p),
				)
		}
		return nil, noRevision(p, "%s has no revision before the active one that was healthy", inventory.ShortName(p))
	}
	for _, rev := range revisions {
		if rev.GetName() == to || strconv.FormatInt(rev.RevisionSpec().Revision, 10) == to {
			return rev, nil
		}
	}
	for _, rev := range revisions {
		if ref, err := oci.ParseReference(rev.RevisionSpec().Image, oci.ParseOptions{}); err == nil && ref.Tag == to {
			return rev, nil
		}
	}
	return nil, noRevision(p, "%s has no revision %s", inventory.ShortName(p), to)
}

// noRevision returns the error for a missing revision of p.
func noRevision(p v1.Package, format string, args ...any) error {
	return ErrNoRevision.New(nil, format, args...).
		WithDo(
			"List the revisions with `xpkg history %s`, or the versions of the package with `xpkg versions %s`.",
			inventory.ShortName(p), inventory.RepositoryOf(p),
		)
}
