package packages

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

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
		err := cluster.List(
			ctx, &list, client.InNamespace(cmp.Or(o.GetNamespace(), corev1.NamespaceDefault)),
			client.MatchingFields{"involvedObject.uid": string(o.GetUID())},
		)
		if err != nil {
			return out
		}
		for _, e := range list.Items {
			out = append(out, eventView{
				Type: e.Type, Reason: e.Reason, Object: v1.ObjectName(e.InvolvedObject.Kind, e.InvolvedObject.Name),
				Message: e.Message, Last: lastSeen(e),
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
		{"Name", v1.ObjectName(d.Kind, d.Name)}, {"Package", d.Package}, {"Running", d.runningText()},
		{"Resolved", d.Resolved}, {"Digest", d.Digest},
		{"Title", d.Presentation.Title}, {"Summary", wording.FirstSentence(d.Presentation.Summary, 120)},
		{"Category", d.Presentation.Category}, {"Website", d.Presentation.Website},
		{"Maintainers", firstLine(d.Presentation.Maintainers)},
		{"Installed", terminal.Age(d.Created, time.Now()) + " ago, " + string(d.Reason)},
		{"Capabilities", strings.Join(d.Capabilities, ", ")},
		{"Kinds", kindsText(d.ActiveKinds)},
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
	events := view.Table{Header: []string{"AGE", "TYPE", "REASON", "OBJECT", "SOURCE", "MESSAGE"}, Least: []string{
		"SOURCE", "TYPE", "OBJECT",
	}}
	for _, e := range d.Events {
		message, _, _ := strings.Cut(e.Message, "\n\n")
		events.Rows = append(events.Rows, []string{
			terminal.Age(e.Last, time.Now()), e.Type, e.Reason, e.Object, e.Source, shown.Text(message),
		})
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

// writeConditions writes conditions, each in a line. The block after an empty line in a message, such as the manifest
// of missing permissions, keeps its lines. A message that several conditions, events and dependencies have is written
// once.
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

// kindsText describes how many kinds of a Provider are active; empty for other packages.
func kindsText(k *v1.KindCounts) string {
	if k == nil || k.Offered == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d active", k.Active, k.Offered)
}
