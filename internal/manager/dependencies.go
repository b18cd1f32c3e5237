package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/dependency"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/format"
)

// Failures of dependencies.
var (
	ErrDependencyMissing = failure.Register(failure.Code{
		Name: "DependencyMissing", Class: failure.Conflict,
		Cause: "A package that this one depends on is not installed.",
		Fix:   "Install the packages that the message names; the install then continues by itself.",
	})
	ErrDependencyVersion = failure.Register(failure.Code{
		Name: "DependencyVersion", Class: failure.Conflict,
		Cause: "A package that this one depends on is installed at a version that it does not accept.",
		Fix:   "Install a version of the dependency within the constraint that the message names.",
	})
)

// dependencies checks that everything the package directly depends on is
// installed at a version that it accepts, and counts it in the status.
func (r *revisionReconciler) dependencies(ctx context.Context, rev v1.PackageRevision, meta format.Meta) error {
	status := rev.RevisionStatus()
	status.FoundDependencies, status.InstalledDependencies, status.InvalidDependencies = 0, 0, 0
	if rev.RevisionSpec().SkipDependencyResolution || len(meta.DependsOn) == 0 {
		return nil
	}
	installed, err := r.installed(ctx)
	if err != nil {
		return err
	}
	status.FoundDependencies = int64(len(meta.DependsOn))
	var missing, invalid []string
	for _, d := range dependency.Check(meta.DependsOn, installed) {
		switch d.State {
		case dependency.Missing:
			missing = append(missing, strings.TrimSpace(d.Need.Package+" "+d.Need.Constraint))
			continue
		case dependency.Unfit:
			status.InvalidDependencies++
			invalid = append(invalid, fmt.Sprintf("%s is installed at %s, and %s is needed", d.Need.Package, d.At.Identifier(), d.Need.Constraint))
		}
		status.InstalledDependencies++
	}
	switch {
	case len(missing) > 0:
		return ErrDependencyMissing.New(errors.New(strings.Join(missing, ", ")), "%s of %d not installed", count(len(missing), "dependency", "dependencies"), len(meta.DependsOn))
	case len(invalid) > 0:
		return ErrDependencyVersion.New(errors.New(strings.Join(invalid, "; ")), "dependencies at a version that does not fit")
	}
	return nil
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// installed maps the repository of every package in the cluster to the reference
// at which it is installed.
func (w *world) installed(ctx context.Context) (dependency.Installed, error) {
	var all []v1.Package
	for _, kind := range v1.PackageKinds() {
		list := v1.NewPackageList(kind)
		if err := w.client.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		all = append(all, list.Packages()...)
	}
	return dependency.Index(all), nil
}
