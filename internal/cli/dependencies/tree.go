package dependencies

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// TreeCmd implements `xpkg tree`.
type TreeCmd struct {
	Name string `arg:"" optional:"" complete:"package" help:"Package to show, as NAME, KIND/NAME or KIND NAME, or an object of the first generation as KIND/NAMESPACE/NAME. Default is every package that no other package needs. Without a cluster: a folder that starts with . or /, a .xpkg file, or a package as xpkg resolve accepts it."`
	TreeFlags
	selection.SelectorFlag
	connection.ClusterFlags
	view.ListOutputFlag
}

// Validate returns an error for a selector with a package or a lock file.
func (c *TreeCmd) Validate() error {
	if c.Selector != "" && (c.Name != "" || c.Lock != "") {
		return errors.New("--selector selects installed packages, and cannot be used with a package or --lock")
	}
	return nil
}

// node is a package in the tree.
type node struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Healthy  string `json:"healthy"`
	// Running is the version that runs in place of the requested one, which is not healthy.
	Running *inventory.Running `json:"running,omitempty"`
	// Deleting reports whether the package is being deleted.
	Deleting bool                    `json:"deleting,omitempty"`
	Reason   inventory.InstallReason `json:"reason"`
	// InstalledFor lists the repositories of the dependents for which the package was installed automatically.
	InstalledFor []string         `json:"installedFor,omitempty"`
	Message      string           `json:"message,omitempty"`
	Objects      map[string]int   `json:"objects,omitempty"`
	Dependencies []dependencyNode `json:"dependencies,omitempty"`
	// InstallObjects are the objects of the first generation that use the package.
	InstallObjects []inventory.InstallObject `json:"installObjects,omitempty"`

	// requested is the version that the package requests.
	requested string
	// dependents are the names of InstalledFor in text.
	dependents string
	// isBelow reports that the message is written below the trees, for several packages.
	isBelow bool
}

// dependencyNode is a dependency, and the package that satisfies it.
type dependencyNode struct {
	Package    string `json:"package"`
	Constraint string `json:"constraint,omitempty"`
	// Optional reports whether the dependency is optional.
	Optional bool `json:"optional,omitempty"`
	// Kinds are the required kinds for which the package was selected.
	Kinds     []string `json:"kinds,omitempty"`
	Installed *node    `json:"installed,omitempty"`
	// Seen reports whether Installed is shown completely elsewhere in the tree.
	Seen bool `json:"seen,omitempty"`
}

// Run prints the dependencies and objects of packages.
func (c *TreeCmd) Run(env *terminal.Env) error {
	if c.Lock != "" || isClosure(c.Name) {
		return c.runClosure(env)
	}
	cluster, err := c.Client(env.Context)
	if err != nil {
		return err
	}
	t, err := readPackageTree(env.Context, cluster, env.Frontend)
	name := inventory.Name(c.Name)
	if inventory.IsObjectName(name) && (err == nil || errors.Is(err, apply.ErrForbidden)) {
		return c.runObject(env, cluster, t, err)
	}
	if err != nil {
		return err
	}
	all, roots := t.all, t.roots()
	if c.Name != "" {
		p, err := all.Find(name)
		if err != nil {
			return inventory.ExplainAbsent(err, t.installs, name)
		}
		roots = []v1.Package{p}
	}
	if c.Selector != "" {
		if roots, err = c.Select(all.Packages); err != nil {
			return err
		}
	}
	if len(all.Packages) == 0 && c.Output == "" {
		fmt.Fprintln(env.Stderr, "No packages are installed.")
	}
	nodes := []*node{}
	for _, p := range roots {
		nodes = append(nodes, t.grow(p))
	}
	for _, name := range t.unknown {
		fmt.Fprintf(
			env.Stderr, "note: the dependencies of %s are unknown, because the Lock does not contain its active revision\n",
			terminal.Safe(name),
		)
	}
	return c.print(env, nodes, t.names())
}

// runObject prints the tree of the package that an object of the first generation uses. If the user is not allowed to
// read packages, or the object uses none, it prints the object with its kinds.
func (c *TreeCmd) runObject(env *terminal.Env, cluster client.Client, t *packageTree, forbidden error) error {
	o, err := inventory.ReadObject(env.Context, cluster, env.Frontend, inventory.Name(c.Name))
	if err != nil {
		return err
	}
	record := o
	n := &node{
		Kind: o.PackageKind(), Name: o.ShortName(), Healthy: inventory.Status(o, v1.TypeReady), Reason: inventory.Explicit,
		Deleting: o.GetDeletionTimestamp() != nil, Message: o.GetCondition(v1.TypeReady).Message, Objects: map[string]int{},
	}
	if o.IsInstall {
		if forbidden == nil {
			p, err := t.all.Used(o)
			if err != nil {
				return err
			}
			return c.print(env, []*node{t.grow(p)}, t.names())
		}
		fmt.Fprintf(
			env.Stderr, "note: the package that %s uses is not shown: %s\n", inventory.ShortName(o),
			terminal.Safe(forbidden.Error()),
		)
		n.Version = inventory.ShortVersion(o.Package)
		record, _ = env.Frontend.RecordOf(env.Context, cluster, o) // The user may read install objects only.
	}
	if record != nil {
		n.Version = cmp.Or(n.Version, record.Presentation.Version)
		if defined := len(record.Defines); defined > 0 {
			n.Objects["CustomResourceDefinition"] = defined
		}
	}
	return c.print(env, []*node{n}, inventory.ResourceNames([]*frontend.Object{o}))
}

// print prints trees, which contain the objects with the names.
func (c *TreeCmd) print(env *terminal.Env, nodes []*node, names []string) error {
	return c.Print(env.Stdout, view.List{Value: nodes, Names: names, Text: func(w io.Writer) { writeTrees(w, nodes) }})
}

// writeTrees writes trees, and below them the messages that several packages have, each once.
func writeTrees(w io.Writer, nodes []*node) {
	var all []*node
	var findings []view.Finding
	var collect func(n *node)
	collect = func(n *node) {
		if n.Message != "" {
			name := v1.ObjectName(n.Kind, n.Name)
			all, findings = append(all, n), append(findings, view.Finding{Subject: name, Text: name + ": " + n.Message})
		}
		for _, d := range n.Dependencies {
			if d.Installed != nil {
				collect(d.Installed)
			}
		}
	}
	for _, n := range nodes {
		collect(n)
	}
	var below []string
	for _, c := range view.ByCause(findings, view.Most(w)) {
		if len(c.Members) == 1 {
			continue
		}
		below = append(below, c.Text)
		for _, i := range c.Members {
			all[i].isBelow = true
		}
	}
	for _, n := range nodes {
		n.write(w, "", "", "")
	}
	for _, text := range below {
		fmt.Fprintf(w, "\n%s\n", terminal.Safe(text))
	}
}

// isClosure distinguishes arguments to resolve from names of installed packages.
func isClosure(s string) bool {
	return location.IsPackageFile(s) || strings.ContainsAny(s, ":@") || strings.HasPrefix(s, ".") ||
		strings.HasPrefix(s, "/")
}

// runClosure prints the tree of a lock file, or of a new resolution.
func (c *TreeCmd) runClosure(env *terminal.Env) error {
	f, err := c.of(env, []string{c.Name})
	if err != nil {
		return err
	}
	nodes := closureTree(f)
	if c.Lock != "" && c.Name != "" {
		p, err := findLocked(f, c.Name)
		if err != nil {
			return err
		}
		nodes = []*treeNode{growClosure(f, p.Repository, "", map[string]bool{})}
	}
	var names []string
	for _, n := range nodes {
		names = n.appendNames(names)
	}
	return c.Print(env.Stdout, view.List{Value: nodes, Names: names, Text: func(w io.Writer) {
		writeClosureTree(w, f, nodes)
	}})
}

// title returns the line of a package below another one, with the dependents for which it was installed, unless it is
// that one alone.
func (n *node) title(parent string) string {
	if n.Reason == inventory.Dependency && n.dependents != parent {
		return n.state() + terminal.Safe("  (installed for "+n.dependents+")")
	}
	return n.state()
}

// state returns the name, the version and the health of a package.
func (n *node) state() string {
	health := "Healthy=" + n.Healthy
	if n.Deleting {
		health = "Deleting"
	}
	if message := n.Message; message != "" && !n.isBelow {
		if n.Healthy == string(corev1.ConditionTrue) {
			message, _, _ = strings.Cut(message, ". ") // A note of many packages is not repeated in full.
		}
		health += "  " + message
	}
	version := n.Version
	if n.Running != nil {
		version = n.requested + " (" + n.Running.String() + ")"
	}
	return terminal.Safe(fmt.Sprintf("%s/%s  %s  %s", strings.ToLower(n.Kind), n.Name, version, health))
}

// write writes n, a dependency of the parent, and the nodes below it, with the prefix first on the first line and rest
// on all others.
func (n *node) write(w io.Writer, parent, first, rest string) {
	fmt.Fprintf(w, "%s%s\n", first, n.title(parent))
	var below []func(first, rest string)
	for _, line := range inventory.InstallLines(n.InstallObjects) {
		below = append(below, func(first, _ string) { fmt.Fprintf(w, "%sused by %s\n", first, terminal.Safe(line)) })
	}
	if text := objectsText(n.Objects); text != "" {
		below = append(below, func(first, _ string) { fmt.Fprintf(w, "%s%s\n", first, text) })
	}
	for _, d := range n.Dependencies {
		below = append(below, func(first, rest string) { d.write(w, n.Name, first, rest) })
	}
	for i, draw := range below {
		if i == len(below)-1 {
			draw(rest+"└─ ", rest+"   ")
		} else {
			draw(rest+"├─ ", rest+"│  ")
		}
	}
}

func (d dependencyNode) write(w io.Writer, parent, first, rest string) {
	needs := terminal.Safe("needs " +
		dependency.Need{Package: d.Package, Constraint: d.Constraint, Kinds: d.Kinds}.String())
	if d.Optional {
		needs = terminal.Safe("works with " + d.Package + " " + d.Constraint)
	}
	switch {
	case d.Installed == nil && d.Optional:
		fmt.Fprintf(w, "%s%s (optional, not installed)\n", first, needs)
	case d.Optional:
		fmt.Fprintf(w, "%s%s: %s (optional)\n", first, needs, d.Installed.title(parent))
	case d.Installed == nil:
		fmt.Fprintf(w, "%s%s: not installed\n", first, needs)
	case d.Seen:
		fmt.Fprintf(w, "%s%s: %s (see above)\n", first, needs, d.Installed.state())
	default:
		fmt.Fprintf(w, "%s%s\n", first, needs)
		d.Installed.write(w, parent, rest+"└─ ", rest+"   ")
	}
}

func objectsText(counts map[string]int) string {
	var parts []string
	for kind, n := range counts {
		parts = append(parts, wording.Count(n, kind))
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ")
}
