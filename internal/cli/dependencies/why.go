package dependencies

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/versions"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// WhyCmd implements `xpkg why`.
type WhyCmd struct {
	Name      string   `arg:"" complete:"package" help:"Package: its repository or the last part of it, or for a cluster its name, as NAME, KIND/NAME or KIND NAME."`
	Packages  []string `arg:"" optional:"" name:"package" help:"Folders and packages to read instead of a cluster, as xpkg resolve accepts them."`
	Namespace string   `default:"crossplane-system" config:"" help:"Namespace of the manager, which contains the pull secrets."`
	TreeFlags
	connection.ClusterFlags
	view.OutputFlag
}

// reasonView is the reason why a package is installed.
type reasonView struct {
	Package string    `json:"package"`
	Version string    `json:"version,omitempty"`
	Digest  string    `json:"digest"`
	Kind    xpkg.Kind `json:"kind"`
	// Paths lead from a root to the package.
	Paths [][]askView `json:"paths"`
	// Reason is the reason for which the package is installed, and InstalledFor lists the repositories of the dependents
	// for which it was installed automatically.
	Reason       inventory.InstallReason `json:"reason,omitempty"`
	InstalledFor []string                `json:"installedFor,omitempty"`
	// InstalledBy is the install object that maintains the package, as KIND/NAMESPACE/NAME.
	InstalledBy string `json:"installedBy,omitempty"`
	// UsedBy lists the objects of the first generation that use the package.
	UsedBy []string `json:"usedBy,omitempty"`
	// WorkWith lists the packages with an optional dependency on it.
	WorkWith []askView `json:"workWith,omitempty"`
	// Status describes the status of the version, if it was yanked, retracted or deprecated and its registry responds.
	Status string `json:"status,omitempty"`

	// short is the version in text, dependents the names of InstalledFor, and name that of the installed package.
	short, dependents, name string
}

// askView is a step of a path.
type askView struct {
	// Dependent is "you", the package of a folder, or a package of the tree.
	Dependent        string `json:"dependent"`
	DependentVersion string `json:"dependentVersion,omitempty"`
	Package          string `json:"package"`
	Constraint       string `json:"constraint"`
	// Kinds are the kinds for which the dependent needs the package.
	Kinds []string `json:"kinds,omitempty"`
}

// needs describes the requirement, without its subject.
func (a askView) needs() string {
	return dependency.Need{Package: a.Package, Constraint: a.Constraint, Kinds: a.Kinds}.String()
}

// Run prints the direct and indirect dependents of a package, and the packages with an optional dependency on it.
func (c *WhyCmd) Run(env *terminal.Env) error {
	s, err := c.subject(env)
	if err != nil {
		return err
	}
	f := s.tree
	p, err := findLocked(f, s.name)
	if err != nil {
		return err
	}
	view := reasonView{
		Package: p.Repository, Version: p.Version, Digest: p.Digest.String(), Kind: p.Kind, Paths: [][]askView{},
		short: p.ShortVersion(),
	}
	for _, path := range f.Paths(p.Repository) {
		view.Paths = append(view.Paths, asksAlong(f, path)...)
	}
	for _, by := range f.OptionalDependents(p.Repository) {
		from, _ := f.Find(by.Package)
		view.WorkWith = append(view.WorkWith, askView{
			Dependent: cmp.Or(by.By, by.Package), DependentVersion: from.Version, Package: p.Repository,
			Constraint: by.Constraint,
		})
	}
	view.installed(s.all, s.uses)
	status := c.startStatus(env, p, s.locate)
	defer status()
	if c.Output != "" {
		view.Status = status()
		return c.Print(env.Stdout, view, nil)
	}
	// The reasons do not wait for the registry.
	if err := c.Print(env.Stdout, view, view.write); err != nil {
		return err
	}
	text := status()
	if text == "" {
		return nil
	}
	return c.Print(env.Stdout, view, func(w io.Writer) {
		fmt.Fprintln(w, terminal.Safe(text))
	})
}

// write writes the reasons as text.
func (v *reasonView) write(w io.Writer) {
	fmt.Fprintf(
		w, "%s  %s\n", terminal.Safe(cmp.Or(v.name, v1.ObjectName(string(v.Kind), v.Package))), terminal.Safe(v.short),
	)
	if line := v.story(); line != "" {
		fmt.Fprintln(w, terminal.Safe(line))
	}
	paths := pathWriter{w, map[string]bool{}}
	for _, path := range v.Paths {
		if v.Reason != inventory.Explicit || len(path) > 1 {
			paths.write(path)
		}
	}
	for _, by := range v.UsedBy {
		fmt.Fprintln(w, terminal.Safe("used by "+by))
	}
	for _, a := range v.WorkWith {
		fmt.Fprintln(w, terminal.Safe(fmt.Sprintf(
			"%s works with %s %s", strings.TrimSpace(a.Dependent+" "+a.DependentVersion), a.Package, a.Constraint,
		)))
	}
}

// installed sets the reason for which the package is installed, and the objects that use it, if a cluster is inspected.
// If several packages are installed from a repository, a package that a user installed takes precedence.
func (v *reasonView) installed(all *inventory.Inventory, uses frontend.Uses) {
	if all == nil {
		return
	}
	for _, p := range all.Packages {
		if inventory.RepositoryOf(p) == v.Package && v.Reason != inventory.Explicit {
			v.Reason, v.InstalledFor = inventory.ReasonOf(p), graph.RequiredBy(p)
			v.dependents, v.name = strings.Join(all.DependentNames(v.InstalledFor), ", "), inventory.ShortName(p)
			v.InstalledBy, v.UsedBy = p.GetAnnotations()[state.AnnotationInstalledBy], usersOf(p, uses)
		}
	}
}

// usersOf returns the objects of the first generation that use a package.
func usersOf(p v1.Package, uses frontend.Uses) []string {
	var out []string
	for _, o := range inventory.InstallsOf(uses.Installs, p) {
		out = append(out, fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name))
	}
	for _, k := range uses.Kinds {
		if p.PackageKind() == v1.ProviderKind && k.Provider == p.GetName() {
			out = append(out, fmt.Sprintf("%s %s for %s", k.Object.PackageKind(), k.Object.ShortName(), k.Kind))
		}
	}
	return out
}

// story returns the reason as a sentence, or "".
func (v *reasonView) story() string {
	switch {
	case v.InstalledBy != "":
		return "installed by " + v.InstalledBy
	case v.Reason == inventory.Explicit:
		return "installed explicitly"
	case v.Reason == inventory.Dependency && len(v.Paths) > 0:
		return "installed as a dependency"
	case v.Reason == inventory.Dependency:
		return fmt.Sprintf("installed as a dependency of %s, and no longer needed", v.dependents)
	}
	return ""
}

// statusTime limits the lookup of the status, which the registry of the package has: the reasons are known without it.
const statusTime = 2 * time.Second

// startStatus starts the lookup of the status, and returns a function that waits for it.
func (c *WhyCmd) startStatus(env *terminal.Env, p lockfile.Package, locate versions.Locate) func() string {
	found := make(chan string, 1)
	go func() { found <- c.status(env, p, locate) }()
	return sync.OnceValue(func() string { return <-found })
}

// status describes the status of a package, or returns "" if it has none or if it cannot be read in time.
func (c *WhyCmd) status(env *terminal.Env, p lockfile.Package, locate versions.Locate) string {
	r, err := c.open(env, locate)
	if err != nil {
		return ""
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(env.Context, statusTime)
	defer cancel()
	return finder(env, r).Status(ctx, p)
}

// subject is the inspected tree, and the name of the package in it.
type subject struct {
	tree lockfile.File
	name string
	// all are the installed packages, and uses the objects of the first generation that use them, if a cluster is
	// inspected.
	all  *inventory.Inventory
	uses frontend.Uses
	// locate locates packages, if a cluster is inspected.
	locate versions.Locate
}

// subject returns the inspected tree. Objects of the first generation that the user is not allowed to read are not
// known.
func (c *WhyCmd) subject(env *terminal.Env) (subject, error) {
	if c.Lock != "" || len(c.Packages) > 0 {
		f, err := c.of(env, c.Packages)
		return subject{tree: f, name: c.Name}, err
	}
	cluster, all, err := selection.Read(env.Context, c.ClusterFlags, inventory.LoadNamed)
	if err != nil {
		return subject{}, err
	}
	closure, name := all.Closure(), c.Name
	p, err := all.Find(inventory.Name(name))
	switch {
	case err == nil:
		name = inventory.RepositoryOf(p)
	case len(closure.Match(name)) == 0:
		return subject{}, err
	}
	uses, _ := selection.ReadUses(env.Context, cluster, c.ClusterFlags, env.Frontend)
	return subject{closure, name, all, uses, versions.LocatorIn(cluster, c.Namespace, all)}, nil
}

// asksAlong returns the dependencies along a path, once for each dependent of its first package.
func asksAlong(f lockfile.File, path []string) [][]askView {
	var between []askView
	for i := 1; i < len(path); i++ {
		from, _ := f.Find(path[i-1])
		for _, d := range dependency.Needs(from.Dependencies) {
			if d.Package == path[i] && !d.Optional {
				between = append(between, askView{
					Dependent: from.Repository, DependentVersion: from.Version, Package: d.Package, Constraint: d.Constraint,
					Kinds: d.Kinds,
				})
			}
		}
	}
	var out [][]askView
	for _, r := range requests(f.Roots) {
		if r.Package == path[0] && !r.Optional {
			first := askView{
				Dependent: dependency.Root{By: r.by}.Requester(), Package: r.Package, Constraint: r.Constraint, Kinds: r.Kinds,
			}
			out = append(out, append([]askView{first}, between...))
		}
	}
	return out
}

// pathWriter writes paths as text. Each path ends where at least two of its last steps were written before.
type pathWriter struct {
	w       io.Writer
	written map[string]bool
}

// write writes a path.
func (p *pathWriter) write(path []askView) {
	lines := make([]string, len(path))
	for i, a := range path {
		lines[i] = fmt.Sprintf("%s needs %s", strings.TrimSpace(a.Dependent+" "+a.DependentVersion), a.needs())
		if a.Dependent == "you" {
			lines[i] = "you requested " + a.needs()
		}
	}
	for i, line := range lines {
		if i > 0 {
			line = strings.Repeat("   ", i-1) + "└─ " + line
		}
		rest := lines[i+1:]
		above := len(rest) > 1 && p.written[strings.Join(rest, "\n")]
		if above {
			line += " (see above)"
		}
		fmt.Fprintln(p.w, terminal.Safe(line))
		if above {
			break
		}
	}
	for i := range lines {
		p.written[strings.Join(lines[i:], "\n")] = true
	}
}
