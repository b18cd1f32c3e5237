package dependencies

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/versions"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// ErrLockDowngrade is the code for an upgrade that would lock older versions.
var ErrLockDowngrade = errcode.Code{
	Name: "LockDowngrade", Class: errcode.Conflict,
	Cause: "An upgrade of the lock file would lock an older version of a package. Often the registry no longer lists the locked version.",
	Fix:   "Determine why the locked version is not selected. To accept the older one, repeat the command with --allow-downgrade.",
}

// checkDowngrades fails if an upgrade lowers the version of a package.
func (c *ResolveCmd) checkDowngrades(before, after lockfile.File, setAside versions.SetAsideOf) error {
	if c.AllowDowngrade || !c.Upgrade && c.UpgradePackage == nil {
		return nil
	}
	var problems []string
	for _, was := range before.Packages {
		is, ok := after.Find(was.Repository)
		if !ok || !versions.Older(is.Version, was.Version) {
			continue
		}
		reason := "the registry no longer lists " + was.Version
		for s := range setAside(was.Repository) {
			if s.Tag == was.Version {
				reason = s.Reason
			}
		}
		problems = append(
			problems, fmt.Sprintf("%s would move from %s to %s: %s", was.Repository, was.Version, is.Version, reason),
		)
	}
	if problems == nil {
		return nil
	}
	return ErrLockDowngrade.New(
		errors.New(strings.Join(problems, "; ")), "the upgrade would lock older versions; %s is unchanged", c.Lock,
	)
}

// heldBack returns a note for each package of --upgrade-package that is not upgraded to its newest version:
// the packages that hold it back, and the command that upgrades them together.
func (c *ResolveCmd) heldBack(before, after lockfile.File, setAside versions.SetAsideOf) []string {
	var out []string
	for _, name := range c.UpgradePackage {
		was, err := findLocked(before, name)
		if err != nil {
			continue
		}
		is, ok := after.Find(was.Repository)
		if !ok || is.Pin() != was.Pin() {
			continue
		}
		newest, why := "", ""
		for s := range setAside(was.Repository) {
			if v := version.Parse(s.Tag); v.Usable() && !v.Prerelease() && versions.Older(was.Version, s.Tag) {
				newest, why = s.Tag, s.Reason
				break
			}
		}
		if newest == "" {
			continue
		}
		holders, command := []string{},
			[]string{"xpkg resolve --lock " + wording.ShellWord(c.Lock) + " --upgrade-package " + wording.ShellWord(name)}
		for _, by := range versions.Binding(&after, was.Repository) {
			if version.ParseConstraint(by.Constraint).Accepts(newest) {
				continue
			}
			holders = append(holders, fmt.Sprintf("%s requires %s", cmp.Or(by.By, by.Package), by.Constraint))
			if by.Package != "" {
				command = append(command, "--upgrade-package "+by.Package)
			}
		}
		switch {
		case len(holders) == 0:
			out = append(
				out, fmt.Sprintf("%s stays at %s, and %s is not selected: %s", was.Repository, was.ShortVersion(), newest, why),
			)
		case len(command) == 1:
			out = append(out, fmt.Sprintf(
				"%s stays at %s although %s is available: %s", was.Repository, was.ShortVersion(), newest,
				strings.Join(holders, ", "),
			))
		default:
			out = append(out, fmt.Sprintf("%s stays at %s although %s is available: %s; to upgrade them together, run %s",
				was.Repository, was.ShortVersion(), newest, strings.Join(holders, ", "), strings.Join(command, " ")))
		}
	}
	return out
}

// warnOfTags prints a note for each kept package whose tag does not refer to the locked digest. It does not
// report a registry that does not respond, because the locked content is not read.
func (r *rootResolver) warnOfTags(env *terminal.Env, kept []lockfile.Package, got resolver.Result) {
	notes := make([]string, len(kept))
	var group errgroup.Group
	group.SetLimit(versions.AtOnce)
	for i, p := range kept {
		if is, ok := got.Find(p.Repository); !ok || is.Digest != p.Digest {
			continue
		}
		group.Go(func() error {
			if err := versions.CheckTag(env.Context, r.content, r.locate, p.Reference()); errors.Is(err, versions.ErrLockTag) {
				notes[i] = errcode.From(err).What
			}
			return nil
		})
	}
	_ = group.Wait() // The functions return no error.
	view.Notes(env.Stderr, notes...)
}
