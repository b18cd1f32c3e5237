// Package dependency compares what a package needs with what is installed.
package dependency

import (
	"github.com/Masterminds/semver/v3"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// State says what there is of a dependency.
type State string

// The states of a dependency.
const (
	// Satisfied is installed at a version that is accepted.
	Satisfied State = "satisfied"
	// Missing is not installed.
	Missing State = "missing"
	// Unfit is installed at a version that is not accepted.
	Unfit State = "unfit"
)

// Found is a dependency and what there is of it.
type Found struct {
	Need  format.Dependency
	State State
	// At is the reference that is installed, unless it is Missing.
	At oci.Reference
}

// Installed maps repositories to the references at which they are installed.
type Installed map[string]oci.Reference

// Index lists packages by their repositories. Those whose reference names none are
// left out.
func Index(packages []v1.Package) Installed {
	out := Installed{}
	for _, p := range packages {
		if ref, err := oci.ParseReference(p.PackageSpec().Package, oci.ParseOptions{}); err == nil {
			out[ref.Name()] = ref
		}
	}
	return out
}

// Check looks every dependency up among what is installed.
func Check(needs []format.Dependency, installed Installed) []Found {
	out := make([]Found, 0, len(needs))
	for _, need := range needs {
		found := Found{Need: need, State: Missing}
		if ref, ok := installed[Repository(need.Package)]; ok {
			found.At, found.State = ref, Unfit
			if accepts(need.Constraint, ref) {
				found.State = Satisfied
			}
		}
		out = append(out, found)
	}
	return out
}

// Repository is the canonical form of a dependency's package, without tag and
// digest.
func Repository(s string) string {
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
