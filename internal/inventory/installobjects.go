package inventory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/apply"
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

// ReadObjects returns the objects of the first generation of all namespaces: install objects, and the Packages that users
// created. It returns none in a cluster without them, and those before the first kind that the user is not allowed to read.
func ReadObjects(ctx context.Context, cluster client.Client) []packagesv1alpha1.Object {
	var out []packagesv1alpha1.Object
	for _, kind := range packagesv1alpha1.Kinds() {
		all, err := state.ListObjects(ctx, cluster, kind)
		if err != nil {
			return out
		}
		for _, o := range all {
			o.GetObjectKind().SetGroupVersionKind(packagesv1alpha1.GroupVersion.WithKind(kind))
			out = append(out, o)
		}
	}
	return out
}

// ReadNamespace returns the objects of the first generation of a namespace, and the error of the first kind that the user is not allowed to
// read. It fails if the user is not allowed to read any of them.
func ReadNamespace(ctx context.Context, cluster client.Client, namespace string) (found []packagesv1alpha1.Object, forbidden, err error) {
	isAllowed := false
	for _, kind := range packagesv1alpha1.Kinds() {
		all, err := state.ListObjects(ctx, cluster, kind, client.InNamespace(namespace))
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
		for _, o := range all {
			o.GetObjectKind().SetGroupVersionKind(packagesv1alpha1.GroupVersion.WithKind(kind))
			found = append(found, o)
		}
	}
	if !isAllowed {
		return nil, nil, forbidden
	}
	return found, forbidden, nil
}

// ReadUses returns the uses of Providers by objects of the first generation of all namespaces, and none in a cluster without them.
// Unlike [ReadObjects], it fails if the user is not allowed to read them.
func ReadUses(ctx context.Context, cluster client.Client, kinds state.KindReader) (state.Uses, error) {
	uses, err := state.ReadUses(ctx, kinds, cluster)
	return uses, apiserver.Classify(err, "read the objects of %s that use packages", packagesv1alpha1.Group)
}

// ReadInstalls returns the install objects among [ReadObjects].
func ReadInstalls(ctx context.Context, cluster client.Client) []packagesv1alpha1.Install {
	return Installs(ReadObjects(ctx, cluster))
}

// Installs returns the install objects among objects of the first generation.
func Installs(all []packagesv1alpha1.Object) []packagesv1alpha1.Install {
	var out []packagesv1alpha1.Install
	for _, o := range all {
		if in, ok := o.(packagesv1alpha1.Install); ok {
			out = append(out, in)
		}
	}
	return out
}

// splitObjectName returns the parts of the name of an object of the first generation, such as packageinstall/team/x, and
// false for any other name.
func splitObjectName(name Name) (kind string, key client.ObjectKey, ok bool) {
	parts := strings.Split(string(name), "/")
	at := slices.IndexFunc(packagesv1alpha1.Kinds(), func(k string) bool { return strings.EqualFold(k, parts[0]) })
	if len(parts) != 3 || at < 0 {
		return "", client.ObjectKey{}, false
	}
	return packagesv1alpha1.Kinds()[at], client.ObjectKey{Namespace: parts[1], Name: parts[2]}, true
}

// IsObjectName reports whether a name is that of an object of the first generation, such as packageinstall/team/x.
func IsObjectName(name Name) bool {
	_, _, ok := splitObjectName(name)
	return ok
}

// ReadObject returns the object of the first generation with a name as of [IsObjectName]. It fails with PackageNotFound.
func ReadObject(ctx context.Context, cluster client.Client, name Name) (packagesv1alpha1.Object, error) {
	kind, key, _ := splitObjectName(name)
	o, err := cluster.Scheme().New(packagesv1alpha1.GroupVersion.WithKind(kind))
	if err != nil {
		return nil, err
	}
	out := o.(packagesv1alpha1.Object)
	err = cluster.Get(ctx, key, out)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, ErrPackageNotFound.New(nil, "%s does not exist", name)
	}
	out.GetObjectKind().SetGroupVersionKind(packagesv1alpha1.GroupVersion.WithKind(kind))
	return out, apiserver.Classify(err, "read %s", name)
}

// Used returns the package that an install object uses. It fails with PackageNotFound, and with the state of the install object.
func (i *Inventory) Used(in packagesv1alpha1.Install) (v1.Package, error) {
	if p := i.InstalledBy(in); p != nil {
		return p, nil
	}
	return nil, ErrPackageNotFound.New(errors.New(viewOf(in).String()), "%s has no package", ShortName(in)).
		WithDo("Correct the install object as its message describes.")
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

// ControllerImage returns the image of the controller of a Package: with its digest once it runs, and "" without a controller.
func ControllerImage(p *packagesv1alpha1.Package) string {
	if p.Status.RuntimeImage != "" || p.Spec.Controller.Deployment == nil {
		return p.Status.RuntimeImage
	}
	var spec appsv1.DeploymentSpec
	if json.Unmarshal(p.Spec.Controller.Deployment.Spec.Raw, &spec) != nil || len(spec.Template.Spec.Containers) == 0 {
		return ""
	}
	return spec.Template.Spec.Containers[0].Image
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
