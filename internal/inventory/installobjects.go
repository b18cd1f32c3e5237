package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// An InstallObject is an object of the first generation that installs a package through a Provider.
type InstallObject struct {
	Kind      string                 `json:"kind"`
	Namespace string                 `json:"namespace"`
	Name      string                 `json:"name"`
	Ready     corev1.ConditionStatus `json:"ready"`
	Reason    v1.ConditionReason     `json:"reason,omitempty"`
	Message   string                 `json:"message,omitempty"`
}

// String returns the object as a line of text.
func (o InstallObject) String() string {
	text := fmt.Sprintf("%s %s/%s Ready=%s", o.Kind, o.Namespace, o.Name, o.Ready)
	if o.Reason != "" {
		text += " " + string(o.Reason)
	}
	if o.Message != "" {
		text += ": " + o.Message
	}
	return text
}

// ReadNamespace returns the objects of the first generation of a namespace, and the error of the first kind that the
// user is not allowed to read. It fails if the user is not allowed to read any of them.
func ReadNamespace(
	ctx context.Context, cluster client.Client, api *frontend.API, namespace string,
) (found []*frontend.Object, forbidden, err error) {
	isAllowed := false
	for _, k := range api.GroupVersionKinds() {
		kind := k.Kind
		all, err := api.List(ctx, cluster, kind, client.InNamespace(namespace))
		switch failed := apiserver.Classify(err, "list the objects of kind %s in the namespace %s", kind, namespace); {
		case errors.Is(failed, apiserver.ErrNoPackageAPI):
			continue
		case errors.Is(failed, apply.ErrForbidden):
			forbidden = cmp.Or(forbidden, failed)
			continue
		case failed != nil:
			return nil, nil, failed
		}
		isAllowed = true
		found = append(found, all...)
	}
	if !isAllowed {
		return nil, nil, forbidden
	}
	return found, forbidden, nil
}

// ReadUses returns the uses of Providers by objects of the first generation of all namespaces, and none in a cluster
// without them. It fails if the user is not allowed to read them.
func ReadUses(
	ctx context.Context, cluster client.Client, kinds state.KindReader, api *frontend.API,
) (frontend.Uses, error) {
	uses, err := api.Uses(ctx, kinds, cluster)
	return uses, apiserver.Classify(err, "read the objects of the first generation that use packages")
}

// splitObjectName returns the parts of a name such as packageinstall/team/x, and false for any other name.
func splitObjectName(name Name) (ref frontend.Reference, ok bool) {
	parts := strings.Split(string(name), "/")
	if len(parts) != 3 || slices.Contains(parts, "") || KindNamed(parts[0]) != "" || strings.ContainsAny(parts[0], ".:") {
		return frontend.Reference{}, false
	}
	return frontend.Reference{Kind: parts[0], Namespace: parts[1], Name: parts[2]}, true
}

// IsObjectName reports whether a name is that of an object with a namespace, such as packageinstall/team/x.
func IsObjectName(name Name) bool {
	_, ok := splitObjectName(name)
	return ok
}

// ReadObject returns the object of an API with a name as of [IsObjectName]. It fails with PackageNotFound.
func ReadObject(ctx context.Context, cluster client.Client, api *frontend.API, name Name) (*frontend.Object, error) {
	ref, _ := splitObjectName(name)
	kind := api.KindNamed(ref.Kind)
	if kind == "" {
		return nil, ErrPackageNotFound.New(nil, "the kind of %s is unknown", name)
	}
	ref.Kind = kind
	o, err := api.Get(ctx, cluster, ref)
	if err == nil && o == nil {
		return nil, ErrPackageNotFound.New(nil, "%s does not exist", name)
	}
	return o, apiserver.Classify(err, "read %s", name)
}

// Used returns the package that an install object uses. It fails with PackageNotFound, and with the state of the
// install object.
func (i *Inventory) Used(in *frontend.Object) (v1.Package, error) {
	if p := i.InstalledBy(in); p != nil {
		return p, nil
	}
	return nil, ErrPackageNotFound.New(errors.New(viewOf(in).String()), "%s has no package", ShortName(in)).
		WithDo("Correct the install object as its message describes.")
}

// InstalledBy returns the package that an install object uses, or nil.
func (i *Inventory) InstalledBy(in *frontend.Object) v1.Package {
	name := in.Provider
	at := slices.IndexFunc(i.Packages, func(p v1.Package) bool {
		return name != "" && p.PackageKind() == v1.ProviderKind && p.GetName() == name
	})
	if at < 0 {
		return nil
	}
	return i.Packages[at]
}

// InstallsOf returns the install objects that use a package.
func InstallsOf(all []*frontend.Object, p v1.Package) []InstallObject {
	var out []InstallObject
	for _, in := range all {
		if p.PackageKind() == v1.ProviderKind && in.Provider == p.GetName() {
			out = append(out, viewOf(in))
		}
	}
	return out
}

func viewOf(in *frontend.Object) InstallObject {
	ready := in.GetCondition(v1.TypeReady)
	return InstallObject{in.PackageKind(), in.GetNamespace(), in.GetName(), ready.Status, ready.Reason, ready.Message}
}

// ExplainAbsent adds the state of the install objects with the name to the error of a package that is not installed.
func ExplainAbsent(err error, all []*frontend.Object, name Name) error {
	_, plain, _ := name.Split()
	var states []string
	do := "Correct the install object as its message describes."
	for _, in := range all {
		if in.GetName() != plain {
			continue
		}
		states = append(states, viewOf(in).String())
		if used := in.Provider; used != "" && in.GetCondition(v1.TypeReady).Status == corev1.ConditionTrue {
			do = fmt.Sprintf("Name the package that the install object uses: provider/%s.", used)
		}
	}
	if len(states) == 0 || !errors.Is(err, ErrPackageNotFound) {
		return err
	}
	return ErrPackageNotFound.New(
		errors.New(strings.Join(states[:min(len(states), shownInstalls)], "; ")), "no package %s is installed", name,
	).
		WithDo("%s", do)
}

// shownInstalls is the number of install objects in a text.
const shownInstalls = 20

// InstallLines returns the install objects as lines of text.
func InstallLines(all []InstallObject) []string {
	var out []string
	for _, o := range all[:min(len(all), shownInstalls)] {
		out = append(out, o.String())
	}
	if more := len(all) - len(out); more > 0 {
		out = append(out, wording.Count(more, "more object"))
	}
	return out
}
