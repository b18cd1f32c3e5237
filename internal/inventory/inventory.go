// Package inventory reads the packages that are installed in a cluster, and describes their
// state for users.
package inventory

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Codes for names of packages.
var (
	ErrPackageNotFound = errcode.Code{
		Name: "PackageNotFound", Class: errcode.NotFound,
		Cause: "No package with that name is installed.",
		Fix:   "List the installed packages with `xpkg list`.",
	}
	ErrAmbiguous = errcode.Code{
		Name: "AmbiguousName", Class: errcode.Usage,
		Cause: "The name is ambiguous: packages of several kinds have it.",
		Fix:   "Put the kind before the name, for example provider/hello.",
	}
)

// Inventory holds the installed packages of a cluster.
type Inventory struct {
	Packages []v1.Package
	Lock     *v1beta1.Lock
	// Forbidden is the reason why the packages are not known, or nil; see [LoadAllowed].
	Forbidden error
	// rewrites returns the location from which a repository is read; nil if the ImageConfigs were not read.
	rewrites func(repository string) string
	// locations are the results of rewrites.
	locations map[string]string
	// byRepository and entries are built by the first lookup.
	byRepository map[string]v1.Package
	entries      map[string]v1beta1.LockPackage
}

// Load reads all packages and the Lock.
func Load(ctx context.Context, c client.Client) (*Inventory, error) {
	var lock v1beta1.Lock
	var lockErr error
	var reads sync.WaitGroup
	reads.Go(func() { lockErr = client.IgnoreNotFound(c.Get(ctx, client.ObjectKey{Name: v1beta1.LockName}, &lock)) })
	out, err := LoadPackages(ctx, c)
	reads.Wait()
	if err != nil {
		return nil, err
	}
	if lockErr != nil {
		return nil, apiserver.Classify(lockErr, "read the lock")
	}
	out.Lock = &lock
	return out, nil
}

// LoadAllowed loads the packages with a function, for a command that shows objects of the first generation. Such
// objects are in a namespace, and a user may have no permission to read packages, which belong to the whole cluster:
// the inventory is empty then.
func LoadAllowed(
	ctx context.Context, c client.Client, load func(context.Context, client.Client) (*Inventory, error),
) (*Inventory, error) {
	out, err := load(ctx, c)
	if errors.Is(err, apply.ErrForbidden) {
		return &Inventory{Lock: &v1beta1.Lock{}, Forbidden: err}, nil
	}
	return out, err
}

// LoadPackages reads only the packages, for callers without permission to read the Lock.
func LoadPackages(ctx context.Context, c client.Client) (*Inventory, error) {
	lists, err := OfEachKind(func(kind string) (v1.PackageList, error) {
		list := v1.NewPackageList(kind)
		return list, apiserver.Classify(c.List(ctx, list), "list %ss", strings.ToLower(kind))
	})
	if err != nil {
		return nil, err
	}
	out := &Inventory{Lock: &v1beta1.Lock{}}
	for i, kind := range v1.PackageKinds() {
		for _, p := range lists[i].Packages() {
			p.GetObjectKind().SetGroupVersionKind(v1.GroupVersion.WithKind(kind))
			out.Packages = append(out.Packages, p)
		}
	}
	return out, nil
}

// OfEachKind calls a function for all kinds of packages at once, and returns the results in the order of the kinds, or
// the error of the first kind that failed.
func OfEachKind[T any](read func(kind string) (T, error)) ([]T, error) {
	kinds := v1.PackageKinds()
	out, errs := make([]T, len(kinds)), make([]error, len(kinds))
	var group sync.WaitGroup
	for i, kind := range kinds {
		group.Go(func() { out[i], errs[i] = read(kind) })
	}
	group.Wait()
	return out, cmp.Or(errs...)
}

// Find returns the only package with a name.
func (i *Inventory) Find(n Name) (v1.Package, error) {
	kind, name, err := n.Split()
	if err != nil {
		return nil, ErrPackageNotFound.New(err, "no package %s is installed", n)
	}
	var found []v1.Package
	for _, p := range i.Packages {
		if p.GetName() == name && (kind == "" || kind == p.PackageKind()) {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return nil, i.Absent(cmp.Or(strings.ToLower(kind), "package"), name)
	case 1:
		return found[0], nil
	}
	var names []string
	for _, p := range found {
		names = append(names, ShortName(p))
	}
	return nil,
		ErrAmbiguous.New(nil, "%d packages are named %s", len(found), name).WithDo("Use %s.", strings.Join(names, " or "))
}

// Absent returns the error of a name that is not installed, with similar names as suggestions.
func (i *Inventory) Absent(what, name string) error {
	var alike, names, sources []string
	for _, p := range i.Packages {
		if strings.Contains(p.GetName(), name) {
			alike = append(alike, p.GetName())
		}
		names, sources = append(names, p.GetName()), append(sources, p.PackageSpec().Package)
	}
	alike = append(alike, spelling.Alike(name, names)...)
	if slices.Contains(names, name) {
		alike = []string{name} // Only the kind differs.
	}
	if len(alike) > 0 {
		sources = nil
	}
	sources = spelling.AlikeReferences(name, sources)
	var meant []string
	for _, p := range i.Packages {
		if slices.Contains(alike, p.GetName()) || slices.Contains(sources, p.PackageSpec().Package) {
			meant = append(meant, ShortName(p))
		}
	}
	f := ErrPackageNotFound.New(nil, "no %s %s is installed", what, name)
	if len(meant) == 0 {
		return f
	}
	return f.WithDo("Did you mean %s? %s", strings.Join(meant[:min(3, len(meant))], " or "), ErrPackageNotFound.Fix)
}
