package packages

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
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
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
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
	return cmp.Or(c.Check(len(c.Names)), inventory.ValidateNames(slices.DeleteFunc(slices.Clone(c.Names), inventory.IsObjectName)))
}

// Run prints the details of packages: their versions, conditions, objects, permissions, dependencies and revisions,
// and the latest events. With -o, several packages are a list.
func (c *DescribeCmd) Run(env *terminal.Env) error {
	cluster, err := c.Client(env.Context)
	if err != nil {
		return err
	}
	load := inventory.LoadNamed
	if c.Selector == "" && !slices.ContainsFunc(c.Names, func(n inventory.Name) bool { return !inventory.IsObjectName(n) }) {
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

// described returns the object that a name of a command line describes: a package, for an install object the package that it
// uses, or the install object itself if the user may not read packages, or a Package of the first generation. It fails with PackageNotFound, and with the state of the install objects with the
// name.
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
		Kind: o.PackageKind(), Name: o.ShortName(), Package: o.Package, Created: o.GetCreationTimestamp().Time, Reason: inventory.Explicit,
		Conditions: conditionViews(o.Conditions), Objects: map[string][]string{}, Permissions: record.Permissions, Kinds: record.Defines,
		Dependencies: []requirement{}, Revisions: []revisionView{}, Events: readEvents(ctx, cluster, objects), Presentation: record.Presentation,
	}
	if by := record.Controller; by != nil {
		d.Objects[by.Kind] = append(d.Objects[by.Kind], path.Join(by.Namespace, by.Name))
	}
	return d
}

// describe returns everything about one package.
func (c *DescribeCmd) describe(ctx context.Context, cluster client.Client, all *inventory.Inventory, p v1.Package) (*description, error) {
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
	// Running is the package that runs instead of the requested one, which is not healthy, and RunningRevision its revision. After a
	// rollback, Resolved and Digest refer to it.
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
	Dependencies []requirement       `json:"dependencies"`
	Dependents   []string            `json:"dependents"`
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
func describeDeletion(ctx context.Context, flags connection.ClusterFlags, p v1.Package, revisions []v1.PackageRevision) *deletion {
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
		Kind: p.PackageKind(), Name: p.GetName(), Package: p.PackageSpec().Package, Resolved: status.ResolvedPackage, Digest: status.ResolvedDigest,
		Created: p.GetCreationTimestamp().Time, Reason: inventory.ReasonOf(p), Conditions: conditionViews(status.Conditions),
		RolledBack: revision.PolicyOf(p).Back, Objects: map[string][]string{}, Dependencies: []requirement{}, Revisions: revisionViews(revisions), Events: []eventView{},
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
	d.Permissions, d.Unapproved, d.Capabilities = status.PermissionRequests, status.UnapprovedPermissions, status.Capabilities
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
		out = append(out, conditionView{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time})
	}
	slices.SortFunc(out, func(a, b conditionView) int { return cmp.Compare(a.Type, b.Type) })
	return out
}

// eventView is an event of a package or of one of its revisions.
type eventView struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
	Object string `json:"object"`
	// Source is the component that reported the event; it may be empty.
	Source  string    `json:"source,omitempty"`
	Message string    `json:"message"`
	Last    time.Time `json:"last"`
}

// shownEvents is the number of events in a description.
const shownEvents = 10

// readEvents returns the latest events of objects, oldest first. It returns none if the user is not allowed
// to read events.
func readEvents(ctx context.Context, cluster client.Client, objects []client.Object) []eventView {
	out := []eventView{}
	for _, o := range objects {
		var list corev1.EventList
		// Events of cluster-scoped objects are in the namespace default.
		err := cluster.List(ctx, &list, client.InNamespace(cmp.Or(o.GetNamespace(), corev1.NamespaceDefault)), client.MatchingFields{"involvedObject.uid": string(o.GetUID())})
		if err != nil {
			return out
		}
		for _, e := range list.Items {
			out = append(out, eventView{
				Type: e.Type, Reason: e.Reason, Object: v1.ObjectName(e.InvolvedObject.Kind, e.InvolvedObject.Name), Message: e.Message, Last: lastSeen(e),
				Source: cmp.Or(e.ReportingController, e.Source.Component),
			})
		}
	}
	slices.SortStableFunc(out, func(a, b eventView) int { return a.Last.Compare(b.Last) })
	return out[max(0, len(out)-shownEvents):]
}

// lastSeen returns the time of the latest occurrence of an event. Which field contains it depends on the API that the
// event was created with.
func lastSeen(e corev1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	for _, t := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time, e.CreationTimestamp.Time} {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

func objectsOf(revisions []v1.PackageRevision) []client.Object {
	out := make([]client.Object, len(revisions))
	for i, rev := range revisions {
		out[i] = rev
	}
	return out
}

// runningText returns the package that runs instead of the requested one, with its revision, or "".
func (d *description) runningText() string {
	if d.Running == "" {
		return ""
	}
	return d.Running + " (revision " + d.RunningRevision + ")"
}

// write writes the description in sections. It omits empty sections.
func (d *description) write(w io.Writer) {
	head := [][2]string{
		{"Name", v1.ObjectName(d.Kind, d.Name)}, {"Package", d.Package}, {"Running", d.runningText()}, {"Resolved", d.Resolved}, {"Digest", d.Digest},
		{"Title", d.Presentation.Title}, {"Summary", firstLine(d.Presentation.Summary)},
		{"Category", d.Presentation.Category}, {"Website", d.Presentation.Website}, {"Maintainers", firstLine(d.Presentation.Maintainers)},
		{"Installed", terminal.Age(d.Created, time.Now()) + " ago, " + string(d.Reason)}, {"Capabilities", strings.Join(d.Capabilities, ", ")},
	}
	if d.RolledBack != "" {
		head = append(head, [2]string{"Rolled back", "to revision " + d.RolledBack + ", because the update failed"})
	}
	if d.Deleting != nil {
		head = append(head, [2]string{"Deleting", "for " + terminal.Age(d.Deleting.Since, time.Now())},
			[2]string{"Held by", d.Deleting.HeldBy}, [2]string{"", d.Deleting.Remedy})
	}
	facts := view.Table{Distance: 1}
	for _, line := range head {
		if line[1] != "" && (line[0] != "Resolved" || line[1] != d.Package) {
			facts.Rows = append(facts.Rows, []string{fmt.Sprintf("%-13s", strings.TrimPrefix(line[0]+":", ":")), line[1]})
		}
	}
	facts.Write(w)
	shown := &view.Once{}
	writeConditions(w, "Conditions", d.Conditions, shown)
	writeConditions(w, "Conditions of the revision", d.RevisionConditions, shown)
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(d.Objects)) {
		for _, name := range d.Objects[kind] {
			lines = append(lines, kind+" "+name)
		}
	}
	writeSection(w, "Objects", lines)
	writeSection(w, "Kinds", d.Kinds)
	writeSection(w, "Requested permissions", rulesText(d.Permissions))
	writeSection(w, "Permissions that wait for approval", rulesText(d.Unapproved))
	lines = nil
	for _, r := range d.Dependencies {
		r.Message = shown.Text(r.Message)
		lines = append(lines, r.String())
	}
	writeSection(w, "Dependencies", lines)
	writeSection(w, "Dependents", d.Dependents)
	writeSection(w, "Install objects", inventory.InstallLines(d.InstallObjects))
	if slices.Contains(v1.PackageKinds(), d.Kind) {
		fmt.Fprintln(w, "\nRevisions:")
		revisionTable(d.Revisions).Write(w)
	}
	if len(d.Events) == 0 {
		return
	}
	fmt.Fprintln(w, "\nEvents:")
	events := view.Table{Header: []string{"AGE", "TYPE", "REASON", "OBJECT", "SOURCE", "MESSAGE"}, Least: []string{"SOURCE", "TYPE", "OBJECT"}}
	for _, e := range d.Events {
		message, _, _ := strings.Cut(e.Message, "\n\n")
		events.Rows = append(events.Rows, []string{terminal.Age(e.Last, time.Now()), e.Type, e.Reason, e.Object, e.Source, shown.Text(message)})
	}
	events.Write(w)
}

// presentationOf returns the description of the package of a revision, which has the annotations of its metadata.
func presentationOf(rev v1.PackageRevision) xpkg.Presentation {
	return xpkg.Meta{Annotations: rev.GetAnnotations()}.Presentation()
}

// firstLine returns the first line of untrusted text, at most 120 characters of it.
func firstLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return wording.ClipCharacters(text, 120)
}

// String returns the requirement as a line of text.
func (r requirement) String() string {
	text := dependency.Need{Package: r.Package, Constraint: r.Constraint, Kinds: r.Kinds}.String()
	if r.Optional {
		text += " (optional)"
	}
	if r.By == "" {
		return text + ": not installed"
	}
	text += ": " + r.By + " " + r.Version
	if r.Message != "" {
		text += " Healthy=" + r.Healthy + ": " + r.Message
	}
	return text
}

func rulesText(rules []rbacv1.PolicyRule) []string {
	var out []string
	for _, r := range rules {
		out = append(out, rbac.Describe(r))
	}
	return out
}

func writeSection(w io.Writer, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n", title)
	for _, line := range lines {
		fmt.Fprintf(w, "  %s\n", terminal.SafeLine(line))
	}
}

// writeConditions writes conditions, each in a line. The block after an empty line in a message, such as the manifest of missing permissions,
// keeps its lines. A message that several conditions, events and dependencies have is written once.
func writeConditions(w io.Writer, title string, conditions []conditionView, shown *view.Once) {
	var lines []string
	for _, c := range conditions {
		line := fmt.Sprintf("%s=%s", c.Type, c.Status)
		if c.Reason != "" {
			line += " " + string(c.Reason)
		}
		line += ", since " + terminal.Age(c.Since, time.Now())
		message, block, _ := strings.Cut(c.Message, "\n\n")
		message = shown.Text(message)
		if message != "" {
			line += ": " + message
		}
		lines = append(lines, line)
		if block = shown.Text(block); block != "" && block != view.SeeAbove {
			for text := range strings.SplitSeq(block, "\n") {
				lines = append(lines, "  "+text)
			}
		}
	}
	writeSection(w, title, lines)
}
