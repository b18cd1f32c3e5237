// Package dependencies contains the commands that resolve, lock, vendor and show
// dependencies: resolve, deps, tree, why and outdated.
package dependencies

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/solver"
)

// ErrLockStale is the code for an outdated lock file that must not be changed.
var ErrLockStale = errcode.Code{
	Name: "LockStale", Class: errcode.Invalid,
	Cause: "The lock file does not satisfy the request: a package was added, removed or changed since it was written.",
	Fix:   "Run `xpkg resolve` with --lock and without --frozen, review the changes, and commit the file.",
}

// ResolveCmd implements `xpkg resolve`.
type ResolveCmd struct {
	RootArgs
	Kind           []string `placeholder:"KIND" help:"Resolve a kind of custom resources to the package that provides it, for example Bucket.s3.aws.upbound.io/v1beta2. The package is recorded in the lock file."`
	Provider       []string `placeholder:"KIND=REPOSITORY" help:"Select the package that provides a kind, if more than one does."`
	Lock           string   `placeholder:"FILE" help:"Lock file to write, or - for standard output. Locked packages keep their versions as long as these are allowed."`
	Frozen         bool     `help:"Check that the lock file satisfies the request, and fail if it does not. Nothing is changed. With --image-config, the signatures are verified, too."`
	Upgrade        bool     `help:"Upgrade all packages to the highest allowed versions."`
	UpgradePackage []string `placeholder:"NAME" help:"Upgrade this package to the highest allowed version, and of the other packages only those that it needs newer. The value is a repository or its last part."`
	AllowDowngrade bool     `help:"Allow --upgrade and --upgrade-package to lock older versions, for example if the registry no longer lists a locked one."`
	AllowSigner    bool     `name:"allow-signer-change" help:"Allow to lock versions that are signed by others than the locked ones, or by none."`
	Manifests      bool     `help:"Print the objects that install everything, for a GitOps repository."`
	content.KindIndexFlag
	resolverFlags
	view.OutputFlag
}

// resolution is the result in the output formats JSON and YAML.
type resolution struct {
	Roots    []dependency.Root `json:"roots"`
	Packages []resolvedPackage `json:"packages"`
	Notes    []string          `json:"notes,omitempty"`
}

type resolvedPackage struct {
	lockfile.Package `json:",inline"`
	Why              []string `json:"reasons"`
	// ListedBy is the repository whose list of tags was used, if it is a different one: a mirror, or the rewritten
	// repository.
	ListedBy string     `json:"listedBy,omitempty"`
	SetAside []setAside `json:"setAside,omitempty"`
}

// setAside is a tag that was not selected.
type setAside struct {
	Tag    string `json:"tag"`
	Reason string `json:"reason"`
}

// Run resolves a dependency tree, writes the lock file and prints the result.
func (c *ResolveCmd) Run(env *terminal.Env) (err error) {
	if c.Frozen && (c.Lock == "" || c.Upgrade || c.UpgradePackage != nil) {
		return terminal.ErrUsage.New(nil, "--frozen needs --lock and cannot be used with an upgrade").
			WithDo("Add --lock xpkg.lock, and omit --upgrade and --upgrade-package.")
	}
	if !c.Frozen && fileutil.IsStdout(c.Lock) && (c.Output != "" || c.Manifests) {
		return terminal.ErrUsage.New(nil, "the lock file and the objects cannot both be written to standard output").
			WithDo("Use a file with --lock, or omit -o and --manifests.")
	}
	before, err := c.readLock(env)
	if err != nil {
		return err
	}
	roots, err := c.allRoots(env)
	if err != nil {
		return err
	}
	if roots == nil {
		roots = before.Roots
	}
	if roots == nil {
		return terminal.ErrUsage.New(nil, "no package is given, and this folder is not a package").
			WithDo("Name the folder of a package, which contains crossplane.yaml or a Project, or a package.")
	}
	if c.Frozen {
		return c.frozen(env, before, roots)
	}
	q := resolver.Request{Roots: roots, Provides: before.ProvidersOfKinds(), Upgrade: c.UpgradePackage != nil}
	if q.Upgrade && !c.AllowDowngrade {
		q.Moves = solver.Upward
	}
	if q.Locked, err = c.kept(before); err != nil {
		return err
	}
	r, err := c.resolverFlags.open(env, nil)
	if err != nil {
		return err
	}
	defer terminal.Close(&err, r)
	if err := c.useKinds(r); err != nil {
		return err
	}
	got, err := r.resolveKinds(env, q, before)
	if err != nil {
		return err
	}
	if err := c.checkDowngrades(before, got.File, got.SetAside); err != nil {
		return err
	}
	if err := c.recordSigners(env, r, before, &got.File); err != nil {
		return err
	}
	view.Notes(env.Stderr, c.heldBack(before, got.File, got.SetAside)...)
	if !slices.EqualFunc(
		before.Packages, got.Packages,
		func(a, b lockfile.Package) bool { return a.Repository == b.Repository && a.Digest == b.Digest },
	) || c.Upgrade || c.UpgradePackage != nil {
		r.warnOfTags(env, q.Locked, got)
	}
	if c.Lock != "" {
		if err := writeLock(env, c.Lock, got.File); err != nil {
			return err
		}
	}
	return c.show(env, before, got)
}

// readLock reads the lock file, which may be missing unless it is frozen.
func (c *ResolveCmd) readLock(env *terminal.Env) (lockfile.File, error) {
	if c.Frozen {
		return readLock(env, c.Lock)
	}
	return readPreviousLock(env, c.Lock)
}

// frozen checks that the lock file satisfies the roots.
func (c *ResolveCmd) frozen(env *terminal.Env, f lockfile.File, roots []dependency.Root) error {
	if problems := f.Check(roots); len(problems) > 0 {
		return ErrLockStale.New(errors.New(strings.Join(problems, "; ")), "%s is out of date", c.Lock)
	}
	if err := c.checkSigners(env, f); err != nil {
		return err
	}
	return c.show(env, f, resolver.Result{File: f})
}

// kept returns the locked packages that are not upgraded.
func (c *ResolveCmd) kept(f lockfile.File) ([]lockfile.Package, error) {
	moving := map[string]bool{}
	for _, name := range c.UpgradePackage {
		p, err := findLocked(f, name)
		if err != nil {
			return nil, err
		}
		moving[p.Repository] = true
	}
	var out []lockfile.Package
	for _, p := range f.Packages {
		if !c.Upgrade && !moving[p.Repository] {
			out = append(out, p)
		}
	}
	return out, nil
}

// show prints the result: a table, the changes of the lock file, or objects.
func (c *ResolveCmd) show(env *terminal.Env, before lockfile.File, got resolver.Result) error {
	if c.Manifests {
		objects, err := lockObjects(got.File)
		if err != nil {
			return err
		}
		return view.PrintManifests(env.Stdout, c.Output, objects)
	}
	return c.Print(c.messages(env), viewOf(got), func(w io.Writer) {
		if c.Lock == "" {
			writeClosure(w, got.File)
			return
		}
		writeLockChanges(w, c.Lock, before, got.File)
	})
}

// messages returns the stream for the result. A frozen lock file is only read.
func (c *ResolveCmd) messages(env *terminal.Env) io.Writer {
	if c.Frozen {
		return env.Stdout
	}
	return env.Messages(c.Lock)
}

func viewOf(got resolver.Result) resolution {
	out := resolution{Roots: got.Roots, Notes: got.Notes, Packages: []resolvedPackage{}}
	for _, p := range got.Packages {
		view := resolvedPackage{Package: p, Why: got.Why[p.Repository], ListedBy: got.ListedBy[p.Repository]}
		for s := range got.SetAside(p.Repository) {
			view.SetAside = append(view.SetAside, setAside(s))
		}
		out.Packages = append(out.Packages, view)
	}
	return out
}

func writeClosure(w io.Writer, f lockfile.File) {
	if len(f.Packages) == 0 {
		fmt.Fprintln(w, "No packages.")
		return
	}
	var rows [][]string
	for _, p := range f.Packages {
		rows = append(rows, []string{
			string(p.Kind), p.Repository, p.ShortVersion(), p.Digest.Short(), neededBy(&f, p.Repository),
		})
	}
	view.Table{
		Header: []string{"KIND", "PACKAGE", "VERSION", "DIGEST", "NEEDED BY"}, Least: []string{"DIGEST", "NEEDED BY"},
		Rows: rows,
	}.Write(w)
}

// neededBy returns the names of the dependents of a package.
func neededBy(f *lockfile.File, repository string) string {
	var out []string
	for _, by := range f.Dependents(repository) {
		out = append(out, fmt.Sprintf("%s (%s)", cmp.Or(by.By, path.Base(by.Package)), by.Constraint))
	}
	return strings.Join(out, ", ")
}
