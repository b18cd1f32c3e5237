// Package dependency contains the commands that change the dependencies in the metadata of a package.
package dependency

import (
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code { return []errcode.Code{ErrNotADependency, ErrNotEditable} }

// ErrNotADependency is the code for a package that the metadata does not depend on.
var ErrNotADependency = errcode.Code{
	Name: "NotADependency", Class: errcode.NotFound,
	Cause: "The package in the folder does not depend on the named package.",
	Fix:   "Name one of the dependencies in the metadata, or add the package with `xpkg dependency add`.",
}

// Cmd implements `xpkg dependency`.
type Cmd struct {
	Add    addCmd    `cmd:"" help:"Add dependencies to the metadata of a package or a Project."`
	Remove removeCmd `cmd:"" help:"Remove dependencies from the metadata of a package or a Project."`
	Update updateCmd `cmd:"" help:"Raise the versions of dependencies in the metadata of a package or a Project."`
}

// folderFlag selects the package.
type folderFlag struct {
	Folder string `short:"f" placeholder:"DIR" default:"." help:"Folder of the package or the Project. Default is this folder."`
}

// write writes the changed metadata, then reports the changes.
func (m *manifest) write(env *terminal.Env, changes []string) error {
	if len(changes) > 0 {
		const mode = 0o644
		if err := fileutil.WriteFile(env.Context, m.path, mode, []byte(strings.Join(m.lines, ""))); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if err := env.Say("%s: %s\n", m.path, c); err != nil {
			return err
		}
	}
	return nil
}

// addCmd implements `xpkg dependency add`.
type addCmd struct {
	Packages []string `arg:"" help:"Packages to add: REPOSITORY, REPOSITORY:TAG or REPOSITORY@CONSTRAINT. Without a tag and a constraint, the newest version that is compatible with the other dependencies, and newer ones."`
	folderFlag
	dependencies.SolveFlags
}

// anyRelease is the constraint that every release satisfies.
const anyRelease = ">=v0.0.0"

// Run solves the dependencies with the new ones, and writes these.
func (c *addCmd) Run(env *terminal.Env) error {
	m, err := readManifest(env, c.Folder)
	if err != nil {
		return err
	}
	asked := map[string]string{}
	requests := []string{c.Folder}
	for _, p := range c.Packages {
		name, constraint, constrained := strings.Cut(p, "@")
		ref, err := oci.ParseReference(name, oci.ParseOptions{DefaultRegistry: c.DefaultRegistry, AllowUntagged: true})
		if err != nil {
			return err
		}
		if _, ok := m.find(ref.Name()); ok {
			return terminal.ErrUsage.New(nil, "%s is already a dependency", ref.Name()).
				WithDo("Raise its version with `xpkg dependency update`.")
		}
		switch {
		case constrained && ref.Tag != "":
			return terminal.ErrUsage.New(nil, "%s has both a tag and a constraint", p).WithDo("Remove one of them.")
		case ref.Tag != "":
			constraint = ref.Tag
		case !constrained:
			constraint = anyRelease
		}
		asked[ref.Name()] = constraint
		requests = append(requests, ref.Name()+"@"+constraint)
	}
	solved, err := c.Solve(env, requests)
	if err != nil {
		return err
	}
	var changes []string
	for _, p := range solved.Packages {
		constraint, ok := asked[p.Repository]
		if !ok {
			continue
		}
		if constraint == anyRelease {
			constraint = ">=" + p.Version
		}
		text, err := m.add(entry{kind: p.Kind, repository: p.Repository, version: constraint})
		if err != nil {
			return err
		}
		if m, err = parseManifest(m.path, text); err != nil {
			return err
		}
		changes = append(changes, fmt.Sprintf("%s %s %s", p.Kind, p.Repository, constraint))
	}
	return m.write(env, changes)
}

// removeCmd implements `xpkg dependency remove`.
type removeCmd struct {
	Packages []string `arg:"" help:"Repositories of the dependencies to remove."`
	folderFlag
}

// Run removes dependencies.
func (c *removeCmd) Run(env *terminal.Env) error {
	m, err := readManifest(env, c.Folder)
	if err != nil {
		return err
	}
	var changes []string
	for _, p := range c.Packages {
		e, ok := m.find(p)
		if !ok {
			return ErrNotADependency.New(nil, "%s does not depend on %s", m.path, p)
		}
		text, err := m.remove(e)
		if err != nil {
			return err
		}
		if m, err = parseManifest(m.path, text); err != nil {
			return err
		}
		changes = append(changes, e.repository+" removed")
	}
	return m.write(env, changes)
}

// updateCmd implements `xpkg dependency update`.
type updateCmd struct {
	Packages []string `arg:"" optional:"" help:"Repositories of the dependencies to update. Default is all of them."`
	folderFlag
	dependencies.SolveFlags
}

// Run solves the dependencies with the newest versions, and writes these in place of exact versions and lower bounds.
// Other constraints remain.
func (c *updateCmd) Run(env *terminal.Env) error {
	m, err := readManifest(env, c.Folder)
	if err != nil {
		return err
	}
	selected := map[string]bool{}
	for _, p := range c.Packages {
		e, ok := m.find(p)
		if !ok {
			return ErrNotADependency.New(nil, "%s does not depend on %s", m.path, p)
		}
		selected[e.repository] = true
	}
	var requests []string
	for _, e := range m.entries {
		constraint := e.version
		if all := len(selected) == 0; (all || selected[e.repository]) && bound(e.version) != nil {
			constraint = anyRelease
		}
		if constraint == "" {
			constraint = anyRelease
		}
		requests = append(requests, e.repository+"@"+constraint)
	}
	if len(requests) == 0 {
		return env.Say("%s: no dependencies\n", m.path)
	}
	solved, err := c.Solve(env, requests)
	if err != nil {
		return err
	}
	var changes []string
	for _, p := range solved.Packages {
		e, ok := m.find(p.Repository)
		write := bound(e.version)
		if !ok || write == nil || len(selected) > 0 && !selected[e.repository] || p.Version == "" {
			continue
		}
		constraint := write(p.Version)
		if constraint == e.version {
			continue
		}
		text, err := m.setVersion(e, constraint)
		if err != nil {
			return err
		}
		if m, err = parseManifest(m.path, text); err != nil {
			return err
		}
		changes = append(changes, fmt.Sprintf("%s %s, was %s", e.repository, constraint, e.version))
	}
	return m.write(env, changes)
}

// bound returns how a constraint names a newer version: as an exact version or as a lower bound. It is nil for other
// constraints.
func bound(constraint string) func(version string) string {
	text := strings.TrimSpace(constraint)
	for _, operator := range []string{">=", "="} {
		if rest, ok := strings.CutPrefix(text, operator); ok {
			rest = strings.TrimLeft(rest, " ")
			if v := version.Parse(rest); !v.Usable() {
				return nil
			}
			space := strings.TrimSuffix(strings.TrimPrefix(text, operator), rest)
			return func(v string) string { return fmt.Sprintf("%s%s%s", operator, space, v) }
		}
	}
	if v := version.Parse(text); !v.Usable() {
		return nil
	}
	return func(v string) string { return v }
}
