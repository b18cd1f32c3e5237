package dependency

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
)

// AllKinds is the name of a KindRef that means every kind of its group.
const AllKinds = "*"

// KindRef names a kind of custom resources that a user or a package requires, without naming a package that
// provides it.
type KindRef struct {
	// Name is a kind ("Bucket"), a plural or singular resource name ("buckets"), or [AllKinds].
	Name string
	// Group is the API group.
	Group string
	// Version is the API version that must be served; empty for any.
	Version string
}

const (
	maxNameLength    = 63
	maxGroupLength   = 253
	maxKindRefLength = len("/") + len(".") + maxGroupLength + 2*maxNameLength
)

var (
	namePattern    = lazyregexp.New(`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`)
	versionPattern = lazyregexp.New(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
)

// ParseKindRef parses NAME.GROUP or NAME.GROUP/VERSION. It also accepts the form of kubectl, NAME.VERSION.GROUP, if
// there is no slash and VERSION has the form of a Kubernetes version, such as v1beta1. The group of a CRD always has
// a dot.
func ParseKindRef(s string) (KindRef, error) {
	if len(s) > maxKindRefLength {
		return KindRef{}, fmt.Errorf("a kind has at most %d characters", maxKindRefLength)
	}
	rest, version, versioned := strings.Cut(s, "/")
	name, group, _ := strings.Cut(rest, ".")
	if first, domain, ok := strings.Cut(group, "."); ok && !versioned && versionPattern().MatchString(first) &&
		strings.Contains(domain, ".") {
		version, group = first, domain
	}
	k := KindRef{Name: name, Group: group, Version: version}
	if versioned && version == "" {
		return KindRef{}, fmt.Errorf("%q has no API version after the slash", s)
	}
	if err := k.validate(); err != nil {
		return KindRef{}, fmt.Errorf("%q is not a kind: %w", s, err)
	}
	return k, nil
}

func (k KindRef) validate() error {
	switch {
	case k.Group == "":
		return errors.New("the API group is missing; write KIND.GROUP, such as Bucket.s3.aws.upbound.io")
	case k.Name != AllKinds && (len(k.Name) > maxNameLength || !namePattern().MatchString(k.Name)):
		return fmt.Errorf("%.70q is not the name of a kind", k.Name)
	case !strings.Contains(k.Group, ".") || len(validation.IsDNS1123Subdomain(k.Group)) > 0:
		return fmt.Errorf(
			"%.300q is not an API group of custom resources, which is a domain such as s3.aws.upbound.io", k.Group,
		)
	case k.Version != "" && len(validation.IsDNS1035Label(k.Version)) > 0:
		return fmt.Errorf("%.70q is not an API version", k.Version)
	}
	return nil
}

// String returns the kind as NAME.GROUP or NAME.GROUP/VERSION.
func (k KindRef) String() string {
	if k.Version == "" {
		return k.WithoutVersion()
	}
	return k.WithoutVersion() + "/" + k.Version
}

// WithoutVersion returns the kind as NAME.GROUP.
func (k KindRef) WithoutVersion() string { return k.Name + "." + k.Group }

// IsAll reports whether k means every kind of its group.
func (k KindRef) IsAll() bool { return k.Name == AllKinds }

// Matches reports whether k names a kind of its group that has one of the given names: its kind, its plural and its
// singular resource name. The case of letters is ignored, as in the names of CRDs.
func (k KindRef) Matches(group string, names ...string) bool {
	if k.Group != group {
		return false
	}
	for _, name := range names {
		if name != "" && strings.EqualFold(k.Name, name) {
			return true
		}
	}
	return k.IsAll()
}

// MarshalText returns the form of String.
func (k KindRef) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText parses the form of ParseKindRef.
func (k *KindRef) UnmarshalText(text []byte) error {
	parsed, err := ParseKindRef(string(text))
	if err != nil {
		return err
	}
	*k = parsed
	return nil
}
