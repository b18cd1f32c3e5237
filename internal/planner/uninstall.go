package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// ErrNotInstalled is the code for an uninstall of a package that does not exist.
var ErrNotInstalled = errcode.Code{
	Name: "NotInstalled", Class: errcode.NotFound,
	Cause: "The package to uninstall does not exist.",
	Fix:   "List the installed packages with `xpkg list`.",
}

// ErrCustomResources is the code for an uninstall of a package with custom resources, without an answer what happens to
// them.
var ErrCustomResources = errcode.Code{
	Name: string(v1.ReasonCustomResourcesExist), Class: errcode.Conflict,
	Cause: "The package has custom resources, and it is not decided what happens to them. Nothing is deleted before that.",
	Fix:   "Keep them, with all objects of the package, with --on-delete orphan, or delete up to 412 of them with --on-delete cascade=412.",
}

// AnswerError returns the error of a plan that deletes more custom resources than its answer permits, or nil.
func (p *Plan) AnswerError() error {
	resources, uncounted := p.CountCustomResources()
	if p.Operation != Uninstall || resources == 0 && uncounted == 0 ||
		p.OnDelete.Cascade && p.OnDelete.Permits(resources) {
		return nil
	}
	var kinds []string
	for _, c := range p.CustomResources {
		kinds = append(kinds, c.String())
	}
	count := wording.Count(int(resources), "custom resource")
	if p.OnDelete.Cascade {
		count += fmt.Sprintf(", and not at most %d", p.OnDelete.AtMost)
	}
	command := "xpkg uninstall " + p.Package.Short() + " --on-delete "
	return ErrCustomResources.New(few(kinds), "to uninstall %s deletes %s", p.Package.Short(), count).WithDo(
		"To keep them, with all objects of the package, use `%s%s`. To delete them, use `%s%s`.", command,
		revision.OnDelete{Orphan: true}, command, p.cascade(),
	)
}

// cascade returns the answer that permits the deletion of all custom resources of the plan.
func (p *Plan) cascade() revision.OnDelete {
	resources, _ := p.CountCustomResources()
	return revision.OnDelete{Cascade: true, AtMost: resources}
}

// AgreeToDelete answers that all custom resources of the plan are deleted, as a user has confirmed.
func (p *Plan) AgreeToDelete() {
	if p.AnswerError() != nil {
		p.OnDelete = p.cascade()
	}
}

// Uninstall plans to delete the package with the kind and name of p. It fails with NotInstalled if
// there is none.
func (pl *Planner) Uninstall(ctx context.Context, p v1.Package, o Options) (*Plan, error) {
	return pl.start(o).uninstall(ctx, p)
}

func (pl *planning) uninstall(ctx context.Context, p v1.Package) (*Plan, error) {
	s, err := pl.read(ctx, p)
	if err != nil {
		return nil, err
	}
	if s.live == nil {
		return nil, ErrNotInstalled.New(nil, "there is no %s %s", strings.ToLower(p.PackageKind()), p.GetName())
	}
	maintained, err := pl.maintenance(ctx, s.live, nil)
	if err != nil {
		return nil, err
	}
	out, err := s.startPlan(Uninstall, p)
	if err != nil {
		return nil, err
	}
	out.recordMaintenance(maintained)
	if out.OnDelete = pl.OnDelete; out.OnDelete == (revision.OnDelete{}) {
		if out.OnDelete, err = revision.OnDeleteOf(s.live); err != nil {
			out.warn(err.Error())
		}
	}
	for _, r := range out.Preconditions.Revisions {
		out.Revisions = append(out.Revisions, RevisionChange{
			Action: CollectRevision, Name: r.Name, Number: r.Number, State: r.State, Digest: r.Digest,
		})
	}
	if err := pl.recordDeletions(ctx, s, out); err != nil {
		return nil, err
	}
	s.warnOfUnknown(out)
	return out, pl.recordDependents(ctx, s, out)
}

// recordDeletions adds to the plan the objects and custom resources that are deleted with the package: also those that
// the garbage collector deletes with an object of the package, such as the CRDs that Crossplane core creates for an
// XRD. It fails if the client may not list CRDs.
func (pl *planning) recordDeletions(ctx context.Context, s *clusterState, out *Plan) error {
	who := revision.Requester(s.live, s.live.NewRevision(), s.revisions)
	owned, unlisted, err := pl.Cluster.OwnedContent(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(unlisted, func(of plan.Ref) bool { return of.Kind == plan.DefinitionKind }) {
		return apply.ErrForbidden.New(nil, "list the CRDs that %s owns", out.Package.Short())
	}
	refs := pl.listedObjects(ctx, s, out)
	// A deleted revision can have contained objects that the package still owns.
	refs = append(refs, plan.Without(owned.By(who.IsFamily), refs)...)
	live, err := pl.metadataIgnoringMissingKinds(ctx, refs)
	if err != nil {
		return err
	}
	if err := pl.dropDeletedOwners(ctx, s, who, live); err != nil {
		return err
	}
	if out.OnDelete.Orphan {
		out.Objects = plan.Orphan(live, who)
		return nil
	}
	deleted := map[types.UID]bool{}
	for known := -1; known < len(deleted); {
		known = len(deleted)
		out.Objects = plan.Uninstall(live, who)
		for _, c := range out.Objects.Changes {
			if c.Action == plan.Delete {
				deleted[c.UID] = true
			}
		}
		dropOwners(live, func(o metav1.OwnerReference) bool { return deleted[o.UID] })
	}
	dependents := owned.By(func(o metav1.OwnerReference) bool { return deleted[o.UID] })
	definitions := deletedDefinitions(out.Objects, dependents)
	out.CustomResources, err = pl.Cluster.CustomResources(ctx, definitions, pl.Identify)
	if out.OnDelete == (revision.OnDelete{}) && len(definitions) > 0 && len(out.CustomResources) == 0 {
		// The manager may not be able to count, and keeps custom resources that are created meanwhile.
		out.OnDelete = out.cascade()
	}
	return err
}

// dropDeletedOwners removes from objects the owners that are packages which are being deleted, do not exist, or are
// removed by an earlier step of the operation, and the revisions of such packages. The garbage collector deletes an
// object when its last owner is deleted. An owner with another UID than the package or revision of its name does not
// exist.
func (pl *planning) dropDeletedOwners(
	ctx context.Context, s *clusterState, who plan.Requester, live map[plan.Ref]plan.Live,
) error {
	stays := map[string]types.UID{}
	for _, x := range s.others {
		if x.GetDeletionTimestamp() == nil {
			stays[holderName(x)] = x.GetUID()
		}
	}
	isForeign := func(o metav1.OwnerReference, kind string) bool {
		return o.Kind == kind && strings.HasPrefix(o.APIVersion, v1.Group+"/") && !who.IsFamily(o)
	}
	for _, kind := range v1.PackageKinds() {
		revisions := v1.RevisionKind(kind)
		for _, l := range live {
			if !slices.ContainsFunc(l.Owners, func(o metav1.OwnerReference) bool { return isForeign(o, revisions) }) {
				continue
			}
			list := v1.NewPackage(kind).NewRevisionList()
			if err := pl.Reader.List(ctx, list); err != nil {
				return fmt.Errorf("list revisions: %w", err)
			}
			for _, r := range list.Revisions() {
				if _, ok := stays[kind+"/"+r.GetLabels()[v1.LabelPackage]]; ok && r.GetDeletionTimestamp() == nil {
					stays[revisions+"/"+r.GetName()] = r.GetUID()
				}
			}
			break
		}
	}
	dropOwners(live, func(o metav1.OwnerReference) bool {
		isPackage := slices.ContainsFunc(
			v1.PackageKinds(), func(kind string) bool { return isForeign(o, kind) || isForeign(o, v1.RevisionKind(kind)) },
		)
		uid, exists := stays[o.Kind+"/"+o.Name]
		return isPackage && (!exists || uid != o.UID)
	})
	return nil
}

// dropOwners removes the matching owners of objects.
func dropOwners(live map[plan.Ref]plan.Live, matches func(metav1.OwnerReference) bool) {
	for ref, l := range live {
		l.Owners = slices.DeleteFunc(slices.Clone(l.Owners), matches)
		live[ref] = l
	}
}

// recordDependents adds to the plan the packages that require the deleted one, the orphans, and a
// warning if the manager would install the deleted package again.
func (pl *planning) recordDependents(ctx context.Context, s *clusterState, out *Plan) error {
	others, err := pl.nodes(ctx, s, func(string) bool { return false })
	if err != nil {
		return err
	}
	out.Breaks = pl.breaks(s, graph.New(others, s.place), nil)
	if err := pl.lostKinds(ctx, s, s.live, nil, graph.Node{}, out); err != nil {
		return err
	}
	var uses frontend.Uses
	if len(out.Breaks) > 0 {
		var err error
		if uses, err = pl.Frontend.Uses(ctx, pl.Cluster, pl.Reader); err != nil {
			out.warn(fmt.Sprintf("The install objects and Packages that use the packages are not known: %v.", err))
		}
		out.Remedy = pl.uninstallRemedy(ctx, s, others, uses, out)
	}
	pl.recordOrphans(ctx, s, others, nil, nil, out)
	if _, runs := s.lock.Annotations[graph.AnnotationUpgrades]; runs {
		out.warn(out.installedAgain(s.others, uses.Installs)...)
	}
	return nil
}

// installedAgain returns a warning if the manager installs the deleted package again: for a package that requires it
// and whose dependencies are resolved, and for an install object that records a package for its kind, or if the indexes
// of the manager have one. A PackageInstall shares a Provider that an administrator installs.
func (p *Plan) installedAgain(others []v1.Package, installs []*frontend.Object) []string {
	skips := func(b Broken) bool {
		return slices.ContainsFunc(others, func(x v1.Package) bool {
			return x.PackageKind() == b.Kind && x.GetName() == b.Name && x.PackageSpec().SkipDependencyResolution
		})
	}
	installOf := func(b Broken) *frontend.Object {
		at := slices.IndexFunc(installs, func(in *frontend.Object) bool {
			return !in.Shares && in.PackageKind() == b.Kind && in.ShortName() == b.Name
		})
		if at < 0 {
			return nil
		}
		return installs[at]
	}
	by := slices.IndexFunc(p.Breaks, func(b Broken) bool {
		in := installOf(b)
		return b.isPackage() && !skips(b) || in != nil && len(graph.KindProviders(in)) > 0
	})
	if by >= 0 {
		return []string{fmt.Sprintf("The package manager installs it again: %s.", p.Breaks[by])}
	}
	if by = slices.IndexFunc(p.Breaks, func(b Broken) bool { return installOf(b) != nil }); by < 0 {
		return nil
	}
	return []string{fmt.Sprintf(
		"The package manager installs a package again only if its indexes have one for the kind: %s.", p.Breaks[by],
	)}
}

// metadataIgnoringMissingKinds reads metadata kind by kind, and ignores kinds that the cluster does
// not serve any more.
func (pl *planning) metadataIgnoringMissingKinds(ctx context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error) {
	type kind struct{ apiVersion, kind string }
	byKind := map[kind][]plan.Ref{}
	for _, ref := range refs {
		k := kind{ref.APIVersion, ref.Kind}
		byKind[k] = append(byKind[k], ref)
	}
	live := map[plan.Ref]plan.Live{}
	for _, some := range byKind {
		found, err := pl.Cluster.Metadata(ctx, some)
		if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
			return nil, err
		}
		maps.Copy(live, found)
	}
	return live, nil
}

// listedObjects returns the objects that the revisions of a package list. It adds a warning for a revision whose
// objects are unknown.
func (pl *planning) listedObjects(ctx context.Context, s *clusterState, out *Plan) []plan.Ref {
	seen := map[plan.Ref]bool{}
	for _, rev := range s.revisions {
		refs, err := pl.packages().ObjectRefs(ctx, rev)
		if err != nil {
			out.warn(fmt.Sprintf("The objects that the revision %s owns are not known: %v.", rev.GetName(), err))
			continue
		}
		for _, ref := range refs {
			seen[ref] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), plan.Ref.Compare)
}

// CheckConsequences fails with PlanMoved if an uninstall now deletes a custom resource that its plan does not, or
// breaks a dependent that its plan does not list: the user agreed to those alone. Custom resources that the plan only
// counts are compared by their number.
func CheckConsequences(planned, now *Plan) error {
	var moved differences
	for _, b := range now.Breaks {
		known := slices.ContainsFunc(planned.Breaks, func(was Broken) bool {
			return was.Kind == b.Kind &&
				was.Name == b.Name && was.Requires == b.Requires
		})
		if !known {
			moved.text("the requirement of "+Package{Kind: b.Kind, Name: b.Name}.Short()+" for "+
				b.Requires, "", cmp.Or(b.Constraint, "any version"))
		}
	}
	for _, r := range now.CustomResources {
		was := planned.customResourcesOf(r.CRD)
		if r.Count > was.Count {
			moved.text("the number of custom resources of "+r.CRD, number(was.Count), number(r.Count))
		} else if r.Unknown != "" && was.Unknown == "" {
			moved.text("the number of custom resources of "+r.CRD, number(was.Count), "not known: "+r.Unknown)
		} else if created := r.newSince(was); created > 0 {
			moved.text("the set of custom resources of "+
				r.CRD, number(was.Count), fmt.Sprintf("%d, of which %d did not exist then", r.Count, created))
		}
	}
	return MovedError(planned, moved)
}

// CheckDependency returns the difference if a package that was installed as a dependency was installed explicitly
// since.
func CheckDependency(planned, now v1.Package) []Difference {
	var moved differences
	if graph.IsAutoInstalled(planned) && !graph.IsAutoInstalled(now) {
		moved.text("the installation of "+
			Package{Kind: now.PackageKind(), Name: now.GetName()}.Short(), "as a dependency", "explicit")
	}
	return moved
}

// deletedDefinitions returns the names of the CRDs and XRDs that a plan deletes, in order, and of those among the
// dependents of its objects. Both have the name of the resource that they define.
func deletedDefinitions(p plan.Plan, dependents []plan.Ref) []string {
	refs := slices.Clone(dependents)
	for _, c := range p.Changes {
		if c.Action == plan.Delete {
			refs = append(refs, c.Ref)
		}
	}
	var names []string
	for _, ref := range refs {
		if ref.Kind == plan.DefinitionKind || ref.Kind == "CompositeResourceDefinition" {
			names = append(names, ref.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
