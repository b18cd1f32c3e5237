package resolver

import (
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// reference returns the reference of a package and a version as named by the solver. An
// empty pin means the repository itself.
func reference(pkg, pin string) (oci.Reference, error) {
	separator := ":"
	switch {
	case pin == "":
		separator = ""
	case strings.HasPrefix(pin, "sha256:"):
		separator = "@"
	}
	ref, err := oci.ParseReference(pkg+separator+pin, oci.ParseOptions{AllowUntagged: pin == ""})
	if err != nil {
		return ref, invalidReference(pkg, err)
	}
	return ref, nil
}

// invalidReference returns the error for a dependency whose package is not a reference.
func invalidReference(pkg string, err error) error {
	parses := func(registry string) bool {
		_, err := oci.ParseReference(pkg, oci.ParseOptions{AllowUntagged: true, DefaultRegistry: registry})
		return err == nil
	}
	if !parses("") && parses("registry.invalid") {
		return ErrUnqualified.New(nil, "%s does not name a registry", pkg)
	}
	return ErrUnusable.New(err, "%q is not a version of a package", pkg)
}

// asNotFound returns the error that the solver receives for a version that could not be
// read. A version with a defect is treated as missing, and noted.
func (s *source) asNotFound(v versionKey, err error) error {
	if !isDefect(err) {
		return err
	}
	s.note(fmt.Sprintf("%s %s cannot be used: %v", v.pkg, v.pin, err))
	return ErrUnusable.New(err, "%s %s cannot be used", v.pkg, v.pin)
}
