package dependencies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/solver"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// Errors of versions in a lock file.
var (
	ErrLockDowngrade = errcode.Code{
		Name: "LockDowngrade", Class: errcode.Conflict,
		Cause: "An upgrade of the lock file would lock an older version of a package. Often the registry no longer lists the locked version.",
		Fix:   "Determine why the locked version is not selected. To accept the older one, repeat the command with --allow-downgrade.",
	}
	ErrLockTag = errcode.Code{
		Name: "LockTagMismatch", Class: errcode.Untrusted,
		Cause: "The tag of a package in the lock file does not refer to the locked digest: the tag was moved or deleted, or the file was edited.",
		Fix:   "Run `xpkg resolve` with --lock and --upgrade-package to lock the current content of the tag, and review the change.",
	}
)

// setAsideOf returns the tags of a repository that were not selected; see [resolver.Result.SetAside].
type setAsideOf func(repository string) iter.Seq[solver.SetAside]

// checkDowngrades fails if an upgrade lowers the version of a package.
func (c *ResolveCmd) checkDowngrades(before, after lockfile.File, setAside setAsideOf) error {
	if c.AllowDowngrade || !c.Upgrade && c.UpgradePackage == nil {
		return nil
	}
	var problems []string
	for _, was := range before.Packages {
		is, ok := after.Find(was.Repository)
		if !ok || !olderVersion(is.Version, was.Version) {
			continue
		}
		reason := "the registry no longer lists " + was.Version
		for s := range setAside(was.Repository) {
			if s.Tag == was.Version {
				reason = s.Reason
			}
		}
		problems = append(problems, fmt.Sprintf("%s would move from %s to %s: %s", was.Repository, was.Version, is.Version, reason))
	}
	if problems == nil {
		return nil
	}
	return ErrLockDowngrade.New(errors.New(strings.Join(problems, "; ")), "the upgrade would lock older versions; %s is unchanged", c.Lock)
}

// olderVersion reports whether the version a is lower than b. Tags that are not versions
// have no order.
func olderVersion(a, b string) bool {
	x, errX := semver.NewVersion(a)
	y, errY := semver.NewVersion(b)
	return errX == nil && errY == nil && x.LessThan(y)
}

// heldBack returns a note for each package of --upgrade-package that is not upgraded to its newest version:
// the packages that hold it back, and the command that upgrades them together.
func (c *ResolveCmd) heldBack(before, after lockfile.File, setAside setAsideOf) []string {
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
			if v := version.Parse(s.Tag); v.Usable() && !v.Prerelease() && olderVersion(was.Version, s.Tag) {
				newest, why = s.Tag, s.Reason
				break
			}
		}
		if newest == "" {
			continue
		}
		holders, command := []string{}, []string{"xpkg resolve --lock " + wording.ShellWord(c.Lock) + " --upgrade-package " + wording.ShellWord(name)}
		for _, by := range binding(&after, was.Repository) {
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
			out = append(out, fmt.Sprintf("%s stays at %s, and %s is not selected: %s", was.Repository, was.ShortVersion(), newest, why))
		case len(command) == 1:
			out = append(out, fmt.Sprintf("%s stays at %s although %s is available: %s", was.Repository, was.ShortVersion(), newest, strings.Join(holders, ", ")))
		default:
			out = append(out, fmt.Sprintf("%s stays at %s although %s is available: %s; to upgrade them together, run %s",
				was.Repository, was.ShortVersion(), newest, strings.Join(holders, ", "), strings.Join(command, " ")))
		}
	}
	return out
}

// checkTag fails with LockTagMismatch if the tag of a locked package does not refer to the locked digest.
func (r *rootResolver) checkTag(ctx context.Context, p lockfile.Package) error {
	return CheckTag(ctx, r.content, r.locate, p)
}

// TagResolver resolves tags to digests; a fetch.Source does.
type TagResolver interface {
	Resolve(ctx context.Context, o fetch.Origin, maxAge time.Duration) (oci.Digest, error)
}

// CheckTag fails with LockTagMismatch if the tag of a locked package does not refer to the locked digest.
func CheckTag(ctx context.Context, content TagResolver, locate locateFunc, p lockfile.Package) error {
	change, err := tagChange(ctx, content, locate, p)
	if err != nil || change == "" {
		return err
	}
	return ErrLockTag.New(nil, "%s, but %s is locked", change, p.Digest.Short())
}

// tagChange describes the change of the tag of a package since it was locked or installed, or returns "" if the tag
// refers to the digest of the package.
func tagChange(ctx context.Context, content TagResolver, locate locateFunc, p lockfile.Package) (string, error) {
	if p.Version == "" || p.Digest.IsZero() {
		return "", nil
	}
	ref := p.RepositoryReference()
	ref.Tag = p.Version
	o, err := locate(ctx, ref)
	if err != nil {
		return "", err
	}
	now, err := content.Resolve(ctx, o, 0)
	switch {
	case errors.Is(err, remote.ErrTagNotFound), errors.Is(err, oci.ErrManifestNotFound):
		return fmt.Sprintf("the tag %s does not exist", ref), nil
	case err != nil:
		return "", err
	case now != p.Digest:
		return fmt.Sprintf("the tag %s refers to %s", ref, now.Short()), nil
	}
	return "", nil
}

// warnOfTags prints a note for each kept package whose tag does not refer to the locked digest. It does not
// report a registry that does not respond, because the locked content is not read.
func (r *rootResolver) warnOfTags(env *terminal.Env, kept []lockfile.Package, got resolver.Result) {
	notes := make([]string, len(kept))
	var group errgroup.Group
	group.SetLimit(lookups)
	for i, p := range kept {
		if is, ok := got.Find(p.Repository); !ok || is.Digest != p.Digest {
			continue
		}
		group.Go(func() error {
			if err := r.checkTag(env.Context, p); errors.Is(err, ErrLockTag) {
				notes[i] = errcode.From(err).What
			}
			return nil
		})
	}
	_ = group.Wait() // The functions return no error.
	for _, note := range notes {
		if note != "" {
			fmt.Fprintf(env.Stderr, "note: %s\n", terminal.Safe(note))
		}
	}
}
