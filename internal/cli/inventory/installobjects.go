package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
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

// ReadInstalls returns the install objects of all namespaces. It returns none in a cluster without them, or if the user is not
// allowed to read them.
func ReadInstalls(ctx context.Context, cluster client.Client) []packagesv1alpha1.Install {
	var out []packagesv1alpha1.Install
	for _, kind := range packagesv1alpha1.InstallKinds() {
		all, err := state.ListInstalls(ctx, cluster, kind)
		if err != nil {
			return out
		}
		for _, in := range all {
			in.GetObjectKind().SetGroupVersionKind(packagesv1alpha1.GroupVersion.WithKind(kind))
			out = append(out, in)
		}
	}
	return out
}

// InstallName returns the kind, the namespace and the name of an install object, such as packageinstall/team/x.
func InstallName(in packagesv1alpha1.Install) string {
	return strings.ToLower(in.PackageKind()) + "/" + in.GetNamespace() + "/" + in.GetName()
}

// IsInstallName reports whether a name has the form of [InstallName].
func IsInstallName(name Name) bool {
	kind, rest, _ := strings.Cut(string(name), "/")
	isKind := slices.ContainsFunc(packagesv1alpha1.InstallKinds(), func(k string) bool { return strings.EqualFold(k, kind) })
	return isKind && strings.Count(rest, "/") == 1
}

// Described returns the package with a name, or the package that the install object with a name as of [InstallName] uses. It
// fails with PackageNotFound, and with the state of the install objects with the name.
func (i *Inventory) Described(name Name, installs []packagesv1alpha1.Install) (v1.Package, error) {
	if !IsInstallName(name) {
		p, err := i.Find(name)
		if err != nil {
			return nil, ExplainAbsent(err, installs, name)
		}
		return p, nil
	}
	at := slices.IndexFunc(installs, func(in packagesv1alpha1.Install) bool { return strings.EqualFold(InstallName(in), string(name)) })
	if at < 0 {
		return nil, ErrPackageNotFound.New(nil, "%s does not exist", name)
	}
	if p := i.InstalledBy(installs[at]); p != nil {
		return p, nil
	}
	return nil, ErrPackageNotFound.New(errors.New(viewOf(installs[at]).String()), "%s has no package", name).
		WithDo("Correct the install object as its message describes.")
}

// InstallResourceNames returns the names of install objects as kubectl prints them: without their namespaces.
func InstallResourceNames(all []packagesv1alpha1.Install) []string {
	out := make([]string, len(all))
	for i, in := range all {
		out[i] = strings.ToLower(in.PackageKind()) + "." + packagesv1alpha1.Group + "/" + in.GetName()
	}
	return out
}

// InstalledBy returns the package that an install object uses, or nil.
func (i *Inventory) InstalledBy(in packagesv1alpha1.Install) v1.Package {
	name := in.InstallStatus().Provider
	at := slices.IndexFunc(i.Packages, func(p v1.Package) bool {
		return name != "" && p.PackageKind() == v1.ProviderKind && p.GetName() == name
	})
	if at < 0 {
		return nil
	}
	return i.Packages[at]
}

// RequestedPackage returns the package that an install object names, with its source, or the kind that it names, after the
// package that was selected for it.
func RequestedPackage(in packagesv1alpha1.Install) string {
	spec, chosen := in.InstallSpec(), in.InstallStatus().ChosenPackage
	text := spec.Package
	if spec.Source != "" {
		text += " (source " + spec.Source + ")"
	}
	if spec.CRD == "" {
		return text
	}
	if chosen != nil && chosen.CRD == spec.CRD {
		text = chosen.Package
	}
	return strings.TrimSpace(text + " (for " + spec.CRD + ")")
}

// InstallsOf returns the install objects that use a package.
func InstallsOf(all []packagesv1alpha1.Install, p v1.Package) []InstallObject {
	var out []InstallObject
	for _, in := range all {
		if p.PackageKind() == v1.ProviderKind && in.InstallStatus().Provider == p.GetName() {
			out = append(out, viewOf(in))
		}
	}
	return out
}

func viewOf(in packagesv1alpha1.Install) InstallObject {
	ready := in.GetCondition(v1.TypeReady)
	return InstallObject{in.PackageKind(), in.GetNamespace(), in.GetName(), ready.Status, ready.Reason, ready.Message}
}

// ExplainAbsent adds the state of the install objects with the name to the error of a package that is not installed.
func ExplainAbsent(err error, all []packagesv1alpha1.Install, name Name) error {
	_, plain, _ := name.Split()
	var states []string
	do := "Correct the install object as its message describes."
	for _, in := range all {
		if in.GetName() != plain {
			continue
		}
		states = append(states, viewOf(in).String())
		if used := in.InstallStatus().Provider; used != "" && in.GetCondition(v1.TypeReady).Status == corev1.ConditionTrue {
			do = fmt.Sprintf("Name the package that the install object uses: provider/%s.", used)
		}
	}
	if len(states) == 0 || !errors.Is(err, ErrPackageNotFound) {
		return err
	}
	return ErrPackageNotFound.New(errors.New(strings.Join(states[:min(len(states), shownInstalls)], "; ")), "no package %s is installed", name).
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
