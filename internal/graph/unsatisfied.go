package graph

import (
	"errors"
	"fmt"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// Unsatisfied describes the dependencies of a revision that are not satisfied.
type Unsatisfied struct {
	Missing, Incompatible, Progressing []string
	// Absent are the optional dependencies that are not installed.
	Absent []string
	// requiredProgressing is the number of dependencies in Progressing that are not optional.
	requiredProgressing int
}

// Describe describes the dependencies that are not satisfied. Message returns the message of a package
// that is not ready, and "" for one that is.
func Describe(all []DependencyStatus, message func(Node) string) Unsatisfied {
	var out Unsatisfied
	reports := func(n Node) string {
		if m := message(n); m != "" {
			// The error itself states the fix.
			m = strings.TrimSuffix(m, " "+ErrDependencyComing.Fix)
			return "; it reports: " + strings.TrimSuffix(m, ".")
		}
		return ""
	}
	for _, d := range all {
		switch d.State {
		case Absent:
			out.Absent = append(out.Absent, d.Dependency.Package+" "+d.Dependency.Constraint)
		case Missing:
			out.Missing = append(out.Missing, strings.TrimSpace(d.Dependency.Package+" "+d.Dependency.Constraint))
		case Incompatible:
			text := "%s is installed at %s, but %s is needed"
			if d.Dependency.Optional {
				text = "%s is installed at %s, but the package works only with %s"
			}
			note := version.PrereleaseNote(d.Dependency.Constraint, d.Installed.Version)
			out.Incompatible = append(out.Incompatible,
				fmt.Sprintf(text, d.Dependency.Package, d.installedVersion(), d.Dependency.Constraint)+note+reports(d.Installed))
		case Progressing:
			out.Progressing = append(out.Progressing, fmt.Sprintf("%s is moving from %s to %s",
				d.Dependency.Package, d.Installed.oldest(), d.Installed.VersionOrDigest())+reports(d.Installed))
			if !d.Dependency.Optional {
				out.requiredProgressing++
			}
		}
	}
	return out
}

// installedVersion returns the installed version, with its digest if the constraint names one.
func (d DependencyStatus) installedVersion() string {
	if strings.Contains(d.Dependency.Constraint, "sha256:") && !d.Installed.Digest.IsZero() {
		return d.Installed.Pin()
	}
	return d.Installed.VersionOrDigest()
}

// oldest returns the version that is in the cluster while another one is being installed.
func (n Node) oldest() Version { return n.Running[len(n.Running)-1] }

// Record writes the numbers of required dependencies into the status of a revision. Total is the number
// of all required dependencies.
func (u Unsatisfied) Record(status *v1.PackageRevisionStatus, total int) {
	status.FoundDependencies = int64(total)
	status.InstalledDependencies = int64(total - len(u.Missing) - u.requiredProgressing)
	status.InvalidDependencies = int64(len(u.Incompatible) + len(u.Progressing) - u.requiredProgressing)
	status.AbsentOptionalDependencies = u.Absent
}

// Err returns the failure of a revision with these dependencies, or nil if it can be installed.
// Installing reports that missing dependencies are being installed.
func (u Unsatisfied) Err(total int, installing bool) error {
	switch {
	case len(u.Missing) > 0 && installing:
		var texts []string
		for _, m := range u.Missing {
			texts = append(texts, m+" is being installed")
		}
		return Coming(texts)
	case len(u.Missing) > 0:
		return ErrDependencyMissing.New(errors.New(strings.Join(u.Missing, ", ")),
			"%s of %d not installed", wording.Count(len(u.Missing), "dependency"), total)
	case len(u.Incompatible) > 0:
		return ErrDependencyVersion.New(
			errors.New(strings.Join(u.Incompatible, "; ")), "dependencies at a version that does not match",
		)
	case len(u.Progressing) > 0:
		return Coming(u.Progressing)
	}
	return nil
}

// Coming returns the failure of a revision that waits for dependencies, each described by a text.
func Coming(texts []string) error {
	return ErrDependencyComing.New(
		errors.New(strings.Join(texts, "; ")), "waiting for %s", wording.Count(len(texts), "dependency"),
	)
}
