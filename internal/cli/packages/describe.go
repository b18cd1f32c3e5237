package packages

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// DescribeCmd implements `xpkg describe`.
type DescribeCmd struct {
	Names []inventory.Name `arg:"" optional:"" name:"name" complete:"package" help:"Packages, each as NAME, KIND/NAME or KIND NAME, or objects of the first generation as KIND/NAMESPACE/NAME."`
	selection.SelectorFlag
	connection.ClusterFlags
	view.ListOutputFlag
}

// Validate returns an error for a name that is not valid, and if no package is selected.
func (c *DescribeCmd) Validate() error {
	return cmp.Or(
		c.Check(len(c.Names)), inventory.ValidateNames(slices.DeleteFunc(slices.Clone(c.Names), inventory.IsObjectName)),
	)
}

// Run prints the details of packages: their versions, conditions, objects, permissions, dependencies and revisions,
// and the latest events. With -o, several packages are a list.
func (c *DescribeCmd) Run(env *terminal.Env) error {
	cluster, err := c.Client(env.Context)
	if err != nil {
		return err
	}
	load := inventory.LoadNamed
	if c.Selector == "" &&
		!slices.ContainsFunc(c.Names, func(n inventory.Name) bool { return !inventory.IsObjectName(n) }) {
		load = func(ctx context.Context, cluster client.Client) (*inventory.Inventory, error) {
			return inventory.LoadAllowed(ctx, cluster, inventory.LoadNamed)
		}
	}
	all, err := load(env.Context, cluster)
	if err != nil {
		return err
	}
	installs := frontend.Installs(env.Frontend.All(env.Context, cluster))
	var found []inventory.Object
	if c.Selector != "" {
		selected, err := c.Select(all.Packages)
		if err != nil {
			return err
		}
		for _, p := range selected {
			found = append(found, p)
		}
	}
	for _, name := range c.Names {
		o, err := described(env, cluster, all, name, installs)
		if err != nil {
			return err
		}
		found = append(found, o)
	}
	var descriptions []*description
	for _, o := range found {
		var d *description
		switch o := o.(type) {
		case *frontend.Object:
			if o.IsInstall {
				notePartial(env, "the package that "+inventory.ShortName(o)+" uses is not shown", all.Forbidden)
			}
			d = describeObject(env.Context, cluster, env.Frontend, o)
		case v1.Package:
			if d, err = c.describe(env.Context, cluster, all, o); err != nil {
				return err
			}
			d.InstallObjects = inventory.InstallsOf(installs, o)
		}
		descriptions = append(descriptions, d)
	}
	var out any = descriptions
	if len(descriptions) == 1 {
		out = descriptions[0]
	}
	return c.PrintText(env.Stdout, out, inventory.ResourceNames(found), func(w io.Writer) {
		for i, d := range descriptions {
			if i > 0 {
				fmt.Fprintln(w)
			}
			d.write(w)
		}
	})
}

// described returns the object that a name of a command line describes: a package, for an install object the package
// that it uses, or the install object itself if the user may not read packages, or a Package of the first generation.
// It fails with PackageNotFound, and with the state of the install objects with the name.
func described(
	env *terminal.Env, cluster client.Client, all *inventory.Inventory, name inventory.Name, installs []*frontend.Object,
) (inventory.Object, error) {
	if !inventory.IsObjectName(name) {
		p, err := all.Find(name)
		if err != nil {
			return nil, inventory.ExplainAbsent(err, installs, name)
		}
		return p, nil
	}
	o, err := inventory.ReadObject(env.Context, cluster, env.Frontend, name)
	if err != nil {
		return nil, err
	}
	if !o.IsInstall || all.Forbidden != nil {
		return o, nil
	}
	p, err := all.Used(o)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// describeObject returns the description of an object of an API, from its record if it has one. It has no revisions.
func describeObject(ctx context.Context, cluster client.Client, api *frontend.API, o *frontend.Object) *description {
	record, objects := o, []client.Object{o}
	if r, err := api.RecordOf(ctx, cluster, o); r != nil && err == nil {
		record, objects = r, append(objects, r)
	}
	d := &description{
		Kind: o.PackageKind(), Name: o.ShortName(), Package: o.Package, Created: o.GetCreationTimestamp().Time,
		Reason:     inventory.Explicit,
		Conditions: conditionViews(o.Conditions), Objects: map[string][]string{}, Permissions: record.Permissions,
		Kinds:        record.Defines,
		Dependencies: []requirement{}, Revisions: []revisionView{}, Events: readEvents(ctx, cluster, objects),
		Presentation: record.Presentation,
	}
	if by := record.Controller; by != nil {
		d.Objects[by.Kind] = append(d.Objects[by.Kind], path.Join(by.Namespace, by.Name))
	}
	return d
}

// describe returns everything about one package.
func (c *DescribeCmd) describe(
	ctx context.Context, cluster client.Client, all *inventory.Inventory, p v1.Package,
) (*description, error) {
	revisions, err := inventory.ReadRevisions(ctx, cluster, p)
	if err != nil {
		return nil, err
	}
	d := describe(all, p, revisions)
	if inventory.IsDeleting(p) {
		d.Deleting = describeDeletion(ctx, c.ClusterFlags, p, revisions)
	}
	d.Events = readEvents(ctx, cluster, append([]client.Object{p}, objectsOf(revisions)...))
	return d, nil
}

// description holds the details of a package.
type description struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Package string `json:"package"`
	// Presentation describes the package to users, from the metadata of the revision that runs.
	Presentation xpkg.Presentation `json:"presentation,omitzero"`
	// Running is the package that runs instead of the requested one, which is not healthy, and RunningRevision its
	// revision. After a rollback, Resolved and Digest refer to it.
	Running         string                  `json:"running,omitempty"`
	RunningRevision string                  `json:"runningRevision,omitempty"`
	Resolved        string                  `json:"resolved,omitempty"`
	Digest          string                  `json:"digest,omitempty"`
	Created         time.Time               `json:"created"`
	Reason          inventory.InstallReason `json:"installReason"`
	RolledBack      string                  `json:"rolledBack,omitempty"`
	Deleting        *deletion               `json:"deleting,omitempty"`
	// Conditions are the conditions of the package and of the revision that runs.
	Conditions         []conditionView     `json:"conditions"`
	RevisionConditions []conditionView     `json:"revisionConditions"`
	Objects            map[string][]string `json:"objects"`
	// Kinds are the kinds that a Package of the first generation names.
	Kinds        []string            `json:"kinds,omitempty"`
	Permissions  []rbacv1.PolicyRule `json:"permissions,omitempty"`
	Unapproved   []rbacv1.PolicyRule `json:"unapprovedPermissions,omitempty"`
	Capabilities []string            `json:"capabilities,omitempty"`
	// ActiveKinds are the numbers of managed resources of a Provider that are active and offered.
	ActiveKinds  *v1.KindCounts `json:"activeKinds,omitempty"`
	Dependencies []requirement  `json:"dependencies"`
	Dependents   []string       `json:"dependents"`
	// InstallObjects are the objects of the first generation that use the package.
	InstallObjects []inventory.InstallObject `json:"installObjects,omitempty"`
	Revisions      []revisionView            `json:"revisions"`
	Events         []eventView               `json:"events"`
}

// deletion is the state of a package that is being deleted.
type deletion struct {
	Since time.Time `json:"since"`
	// HeldBy are the objects with finalizers that delay the deletion.
	HeldBy string `json:"heldBy,omitempty"`
	Remedy string `json:"remedy"`
}

// describeDeletion returns the state of the deletion of a package. It omits objects that the user is not
// allowed to read.
func describeDeletion(
	ctx context.Context, flags connection.ClusterFlags, p v1.Package, revisions []v1.PackageRevision,
) *deletion {
	out := &deletion{Since: p.GetDeletionTimestamp().Time}
	var refs []plan.Ref
	for _, rev := range revisions {
		refs = append(refs, revision.Objects(rev)...)
	}
	var holders []apply.Holder
	if cfg, err := flags.Config(ctx); err == nil {
		if objects, err := apply.NewCluster(cfg); err == nil {
			holders, _ = objects.Holders(ctx, refs)
		}
	}
	out.HeldBy, out.Remedy = inventory.DeletionDelay(p, holders)
	return out
}

type conditionView struct {
	Type    v1.ConditionType       `json:"type"`
	Status  corev1.ConditionStatus `json:"status"`
	Reason  v1.ConditionReason     `json:"reason,omitempty"`
	Message string                 `json:"message,omitempty"`
	Since   time.Time              `json:"since"`
}

// requirement is a dependency and the package that satisfies it.
type requirement struct {
	Package    string `json:"package"`
	Constraint string `json:"constraint,omitempty"`
	Optional   bool   `json:"optional,omitempty"`
	// Kinds are the required kinds for which the package was selected.
	Kinds []string `json:"kinds,omitempty"`
	// By is the installed package, as KIND/NAME, and Version its version. Both are empty if none is installed.
	By      string `json:"by,omitempty"`
	Version string `json:"version,omitempty"`
	// Healthy is the status of the condition Healthy of the installed package, and Message the reason if it is not true.
	Healthy string `json:"healthy,omitempty"`
	Message string `json:"message,omitempty"`
}

// describe returns the description without events. The revisions are sorted, newest first.
func describe(all *inventory.Inventory, p v1.Package, revisions []v1.PackageRevision) *description {
	status := p.PackageStatus()
	d := &description{
		Kind: p.PackageKind(), Name: p.GetName(), Package: p.PackageSpec().Package, Resolved: status.ResolvedPackage,
		Digest:  status.ResolvedDigest,
		Created: p.GetCreationTimestamp().Time, Reason: inventory.ReasonOf(p), Conditions: conditionViews(status.Conditions),
		RolledBack: revision.PolicyOf(p).Back, Objects: map[string][]string{}, Dependencies: []requirement{},
		Revisions: revisionViews(revisions), Events: []eventView{},
	}
	if running := inventory.RunningInstead(p, revisions); running != nil {
		d.Running, d.RunningRevision = running.Package, running.Revision
	}
	if i := slices.IndexFunc(revisions, revision.IsActive); i >= 0 {
		d.addRevision(all, p, revisions[i])
		if d.RolledBack != "" {
			d.Resolved, d.Digest = revisions[i].RevisionStatus().ResolvedImage, revisions[i].RevisionSpec().Digest
		}
	} else if len(revisions) > 0 {
		d.RevisionConditions = conditionViews(revisions[0].RevisionStatus().Conditions)
	}
	d.Dependents = all.Dependents(p)
	return d
}

func (d *description) addRevision(all *inventory.Inventory, p v1.Package, rev v1.PackageRevision) {
	status := rev.RevisionStatus()
	d.Presentation = presentationOf(rev)
	d.RevisionConditions = conditionViews(status.Conditions)
	d.Permissions, d.Unapproved, d.Capabilities = status.PermissionRequests, status.UnapprovedPermissions,
		status.Capabilities
	d.ActiveKinds = status.Kinds
	for _, ref := range status.ObjectRefs {
		d.Objects[ref.Kind] = append(d.Objects[ref.Kind], ref.Name)
	}
	for _, names := range d.Objects {
		slices.Sort(names)
	}
	for _, dep := range all.Needs(p, rev.GetName()) {
		r := requirement{Package: dep.Package, Constraint: dep.Constraint, Optional: dep.Optional, Kinds: dep.Kinds}
		if by := all.FromRepository(dep.Package); by != nil {
			r.By, r.Version = inventory.ShortName(by), inventory.ShortVersion(by.PackageSpec().Package)
			r.Healthy = inventory.Status(by, v1.TypeHealthy)
			if r.Healthy != string(corev1.ConditionTrue) {
				r.Message = inventory.HealthMessage(by)
			}
		}
		d.Dependencies = append(d.Dependencies, r)
	}
}

func conditionViews(conditions []v1.Condition) []conditionView {
	out := []conditionView{}
	for _, c := range conditions {
		out = append(out, conditionView{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time,
		})
	}
	slices.SortFunc(out, func(a, b conditionView) int { return cmp.Compare(a.Type, b.Type) })
	return out
}
