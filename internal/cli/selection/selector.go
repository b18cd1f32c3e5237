package selection

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/inventory"
)

// SelectorFlag selects installed packages by their labels.
type SelectorFlag struct {
	Selector string `short:"l" placeholder:"SELECTOR" help:"Labels of the packages to select, such as team=ships,env!=test."`
}

// Labels parses the flag. The zero value selects every package.
func (f SelectorFlag) Labels() (labels.Selector, error) {
	selector, err := labels.Parse(f.Selector)
	if err != nil {
		return nil, terminal.ErrUsage.New(err, "cannot read the selector %s", f.Selector).
			WithDo("Write it as in kubectl, such as team=ships,env!=test.")
	}
	return selector, nil
}

// Check returns an error unless packages are selected in one way: by their names or by their labels.
func (f SelectorFlag) Check(names int) error {
	switch {
	case names == 0 && f.Selector == "":
		return errors.New("no package is given")
	case names > 0 && f.Selector != "":
		return errors.New("--selector cannot be used with the name of a package")
	}
	return nil
}

// Names returns the names, or those of the selected packages if the flag is set. It fails with PackageNotFound if the
// flag selects none.
func (f SelectorFlag) Names(
	ctx context.Context, cluster connection.ClusterFlags, names []inventory.Name,
) ([]inventory.Name, error) {
	if f.Selector == "" {
		return names, nil
	}
	if _, err := f.Labels(); err != nil {
		return nil, err
	}
	_, all, err := Read(ctx, cluster, inventory.LoadPackages)
	if err != nil {
		return nil, err
	}
	packages, err := f.Select(all.Packages)
	var out []inventory.Name
	for _, p := range packages {
		out = append(out, inventory.Name(inventory.ShortName(p)))
	}
	return out, err
}

// Select returns the selected packages. It fails with PackageNotFound if the flag selects none.
func (f SelectorFlag) Select(packages []v1.Package) ([]v1.Package, error) {
	selector, err := f.Labels()
	if err != nil {
		return nil, err
	}
	out := Selected(packages, selector)
	if len(out) == 0 {
		return nil, inventory.ErrPackageNotFound.New(nil, "no installed package has the labels %s", selector).
			WithDo("List the labels with `kubectl get pkg --show-labels`.")
	}
	return out, nil
}

// Selected returns the objects with the selected labels.
func Selected[T metav1.Object](all []T, selector labels.Selector) []T {
	var out []T
	for _, o := range all {
		if selector.Matches(labels.Set(o.GetLabels())) {
			out = append(out, o)
		}
	}
	return out
}
