package provide

import (
	"context"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// DefiningVersions is a registry without the versions whose content does not define a kind for which they were
// selected. The selection of a provider is a claim about a package, and a version of it is selected before its content
// is read.
type DefiningVersions struct {
	resolver.Registry
	excluded map[string]error
	first    error
}

// ExcludeVersions makes the registry of a resolver one from which versions can be excluded.
func ExcludeVersions(r *resolver.Resolver) *DefiningVersions {
	v := &DefiningVersions{Registry: r.Registry, excluded: map[string]error{}}
	r.Registry = v
	return v
}

// Check returns the error KindNotProvided if the content of a selected version does not define the kinds for which it
// was selected. It excludes the version, and reports false if it was excluded before.
func (v *DefiningVersions) Check(
	version oci.Reference, content *xpkg.Package, kinds ...dependency.KindRef,
) (excluded bool, err error) {
	k, lacks := lacking(content, kinds)
	if !lacks {
		return false, nil
	}
	key := withoutDigest(version)
	err = notProvided(key, k)
	if v.excluded[key] != nil {
		return false, err
	}
	v.excluded[key] = &lacksKind{resolver.ErrUnusable.New(err, "%s is not selected", version), k}
	if v.first == nil {
		v.first = err
	}
	return true, err
}

// lacksKind is the error for an excluded version. The solver selects another one.
type lacksKind struct {
	err  *errcode.Error
	kind dependency.KindRef
}

// Error implements error.
func (l *lacksKind) Error() string { return l.err.Error() }

// Unwrap returns the error with its code.
func (l *lacksKind) Unwrap() error { return l.err }

// WhyNot implements [solver.Explained].
func (l *lacksKind) WhyNot() string {
	return "its content does not define " + l.kind.String() + ", for which it would be selected"
}

// Explain returns the reason of the first exclusion for the error of a resolution that has no solution without the
// excluded versions, and any other error as it is.
func (v *DefiningVersions) Explain(err error) error {
	if err != nil && v.first != nil && errcode.From(err).Code.Class != errcode.Interrupted {
		return v.first
	}
	return err
}

// Metadata implements [resolver.Registry].
func (v *DefiningVersions) Metadata(ctx context.Context, version oci.Reference) (resolver.Metadata, error) {
	if reason := v.excluded[withoutDigest(version)]; reason != nil {
		return resolver.Metadata{}, reason
	}
	return v.Registry.Metadata(ctx, version)
}

// withoutDigest returns a reference without its digest if it has a tag.
func withoutDigest(ref oci.Reference) string {
	if ref.Tag != "" {
		ref.Digest = oci.Digest{}
	}
	return ref.String()
}

// NotEstablished returns the error KindHeld for a kind that an installed package defines, and that the API server does
// not serve yet. Installed is the package as KIND/NAME.
func NotEstablished(installed string, kind dependency.KindRef) error {
	return ErrKindHeld.New(
		nil, "%s, which is installed, defines %s, and the API server does not serve it yet", installed, kind,
	).
		WithDo(
			"Wait until it is established; no other version is needed. `xpkg describe %s` shows the state of the package. The kinds of a CompositeResourceDefinition are established by Crossplane, which must run.",
			installed,
		)
}

// OtherVersion returns the error KindHeld for a ranking whose first candidate is an installed package in a version that
// does not provide the kind. Installed is the package as KIND/NAME.
func OtherVersion(installed string, r Ranking) error {
	return ErrKindHeld.New(
		nil, "%s, which is installed, provides %s only in another version, or is not established yet", installed,
		r.Canonical(),
	).
		WithDo(
			"Run `xpkg describe %s`, or update the package with `xpkg update %s %s`.", installed, installed, r.Order[0].Version,
		)
}
