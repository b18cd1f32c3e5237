package selection

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// CheckNewName returns an error for a name that a new package cannot have.
func CheckNewName(name string) error {
	problems := validation.IsDNS1123Subdomain(name)
	if len(problems) == 0 {
		return nil
	}
	failed := terminal.ErrUsage.New(nil, "%.80q is not a name of a package: %s", name, problems[0])
	if similar := oci.ToDNSLabel(strings.ToLower(name)); similar != "" {
		return failed.WithDo("Use a name such as %s.", similar)
	}
	return failed.WithDo("Use a name such as provider-boats.")
}

// Package returns the installed package of a target of an update.
func Package(all *inventory.Inventory, t inventory.Target) (v1.Package, error) {
	if t.Name != "" {
		return all.Find(t.Name)
	}
	ref, err := flags.ParseReference(t.Ref)
	if err != nil {
		return nil, err
	}
	var found []v1.Package
	for _, p := range all.Packages {
		if all.IsFrom(p, ref.Name()) && (t.Kind == "" || t.Kind == p.PackageKind()) {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return derivedName(all, t, ref)
	}
	var names []string
	for _, p := range found {
		names = append(names, inventory.ShortName(p))
	}
	return nil,
		inventory.ErrAmbiguous.New(nil, "%s are installed from %s", wording.Count(len(found), "package"), ref.Name()).
			WithDo("Add the name of one after the reference: %s.", strings.Join(names, " or "))
}

// derivedName returns the package with the name that an install derives from a reference.
func derivedName(all *inventory.Inventory, t inventory.Target, ref oci.Reference) (v1.Package, error) {
	name := oci.ToDNSLabel(ref.Repository)
	if t.Kind != "" {
		name = v1.ObjectName(t.Kind, name)
	}
	p, err := all.Find(inventory.Name(name))
	if err != nil {
		return nil, inventory.ErrPackageNotFound.New(nil, "no package from %s is installed", ref.Name()).
			WithDo(
				"Install it with `xpkg install %s`, or add the name of the package that it replaces after the reference.",
				wording.ShellWord(ref.String()),
			)
	}
	return p, nil
}
