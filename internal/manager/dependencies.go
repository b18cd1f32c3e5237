package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
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
	for _, d := range meta.DependsOn {
		ref, ok := installed[repository(d.Package)]
		if !ok {
			missing = append(missing, strings.TrimSpace(d.Package+" "+d.Constraint))
			continue
		}
		status.InstalledDependencies++
		if !accepts(d.Constraint, ref) {
			status.InvalidDependencies++
			invalid = append(invalid, fmt.Sprintf("%s is installed at %s, and %s is needed", d.Package, ref.Identifier(), d.Constraint))
		}
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
func (w *world) installed(ctx context.Context) (map[string]oci.Reference, error) {
	out := map[string]oci.Reference{}
	for _, kind := range v1.PackageKinds() {
		list := v1.NewPackageList(kind)
		if err := w.client.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		for _, p := range list.Packages() {
			if ref, err := oci.ParseReference(p.PackageSpec().Package, oci.ParseOptions{}); err == nil {
				out[ref.Name()] = ref
			}
		}
	}
	return out, nil
}

// repository is the canonical form of a dependency's package, without tag and
// digest.
func repository(s string) string {
	ref, err := oci.ParseReference(s, oci.ParseOptions{AllowUntagged: true})
	if err != nil {
		return s
	}
	return ref.Name()
}

// accepts reports whether what is installed satisfies a constraint: a digest by
// being equal, anything else by the rules of Masterminds/semver, which the
// packages guide names. No constraint accepts everything.
func accepts(constraint string, ref oci.Reference) bool {
	if constraint == "" {
		return true
	}
	if d, err := oci.ParseDigest(constraint); err == nil {
		return d == ref.Digest
	}
	c, err := semver.NewConstraint(constraint)
	if err != nil {
		return constraint == ref.Tag
	}
	v, err := semver.NewVersion(ref.Tag)
	return err == nil && c.Check(v)
}
