package versions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

// ErrNoVersion is the code for an update without a compatible version.
var ErrNoVersion = errcode.Code{
	Name: "NoCompatibleVersion", Class: errcode.NotFound,
	Cause: "No release in the repository of the package is compatible with the installed packages, or the versions are unknown.",
	Fix:   "Compare the versions with `xpkg outdated`, and name one after the package in `xpkg update`.",
}

// Installed returns the installed packages, and the roots that an upgrade of one of them keeps.
func Installed(all *inventory.Inventory) (lockfile.File, []dependency.Root) {
	f := all.Closure()
	roots := f.Roots
	f.Roots = nil // Users can update the packages that they installed.
	return f, roots
}

// NewestCompatible returns the newest version of an installed package that its dependents accept and whose own
// dependencies have a solution: the installed version, if there is no newer one. Notes name newer versions and why they
// are not compatible.
func (r *Finder) NewestCompatible(
	ctx context.Context, all *inventory.Inventory, p v1.Package,
) (tag string, notes []string, err error) {
	f, roots := Installed(all)
	i := slices.IndexFunc(f.Packages, func(l lockfile.Package) bool { return l.Repository == inventory.RepositoryOf(p) })
	if i < 0 {
		return "", nil, ErrNoVersion.New(nil, "%s is not installed from a registry", inventory.ShortName(p)).
			WithDo("Install it from a registry, which has versions to update to.")
	}
	rows, err := r.Compare(ctx, f, f.Packages[i:i+1], roots)
	if err != nil {
		return "", nil, err
	}
	row := rows[0]
	switch {
	case row.Compatible == "" && row.Unknown != "":
		return "", nil,
			ErrNoVersion.New(errors.New(row.Unknown), "the %s of %s are unknown", row.UnknownVersions(), row.Package).
				WithDo("List the versions with `xpkg versions %s`, and name one in `xpkg update`.", row.Package)
	case row.Compatible == "":
		return "", nil, ErrNoVersion.New(nil, "no release of %s is compatible with the installed packages", row.Package).
			WithDo(
				"Compare the versions with `xpkg outdated --all`. To plan one, run `xpkg plan update %s %s`.",
				inventory.ShortName(p), cmp.Or(row.Newest, row.Installed),
			)
	case row.Compatible == row.Newest, !row.Behind():
	case row.NewestStatus != "":
		notes = append(notes, fmt.Sprintf("%s %s exists, but is %s", row.Package, row.Newest, row.NewestStatus))
	case len(row.HeldBy) > 0:
		notes = append(
			notes,
			fmt.Sprintf("%s %s exists, but is not accepted by %s", row.Package, row.Newest, strings.Join(row.HeldBy, ", ")),
		)
	case len(row.Needs) > 0:
		notes = append(notes, fmt.Sprintf(
			"%s %s exists, but needs %s; `xpkg update --all --dry-run` shows the newest versions that work together",
			row.Package, row.Newest, strings.Join(row.Needs, ", "),
		))
	default:
		notes = append(notes, fmt.Sprintf(
			"%s %s exists, but its dependencies have no solution with the installed packages", row.Package, row.Newest,
		))
	}
	return row.Compatible, notes, nil
}
