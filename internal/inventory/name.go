package inventory

import (
	"fmt"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// Kind is a kind of package in a command line, such as "Provider", or empty if it is unknown.
type Kind string

// UnmarshalText parses a kind in the forms of kubectl.
func (k *Kind) UnmarshalText(word []byte) error {
	kind := KindNamed(string(word))
	if kind == "" && len(word) > 0 {
		return fmt.Errorf("%s is not provider, configuration or function", word)
	}
	*k = Kind(kind)
	return nil
}

// KindNamed returns the kind for a word of a command line in the forms of kubectl: in singular
// or plural, in any case, with or without the API group and its version, such as "provider",
// "Providers", "provider.pkg" or "providers.v1.pkg.crossplane.io". It returns "" for any other
// word.
func KindNamed(word string) string {
	word, group, qualified := strings.Cut(word, ".")
	if version, rest, ok := strings.Cut(group, "."); ok && version == v1.GroupVersion.Version {
		group = rest
	}
	if qualified && group != "pkg" && group != v1.Group {
		return ""
	}
	return v1.KindNamed(word)
}

// Name is a package in a command line: NAME or KIND/NAME.
type Name string

// Validate returns an error if a name is empty, has an unknown kind, or is only a kind.
func (n Name) Validate() error {
	_, _, err := n.Split()
	return err
}

// ValidateNames returns the error of the first name that is not valid.
func ValidateNames(names []Name) error {
	for _, name := range names {
		if err := name.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Split returns the parts of a name. The kind is "" for a name without one.
func (n Name) Split() (kind, name string, err error) {
	word, name, ok := strings.Cut(string(n), "/")
	kind = KindNamed(word)
	switch {
	case n == "":
		return "", "", fmt.Errorf("the name of the package is empty")
	case !ok && kind != "", ok && kind != "" && name == "":
		return "", "", fmt.Errorf("the name of the %s is missing", strings.ToLower(kind))
	case !ok:
		return "", word, nil
	case IsObjectName(n):
		return "", "", fmt.Errorf("%s is an object of the first generation, and not a package: change or delete it with "+
			"kubectl, or name the package that it uses, which `xpkg describe %s` shows", n, n)
	case kind == "" && strings.ContainsAny(word, ".:"):
		return "", "", fmt.Errorf("%s is a reference: name the installed package, which `xpkg list` shows", n)
	case kind == "":
		return "", "", fmt.Errorf("the kind of %s is not provider, configuration or function", n)
	}
	return kind, name, nil
}
