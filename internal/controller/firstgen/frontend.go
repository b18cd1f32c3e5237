package firstgen

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Frontend returns the API of the first generation for the package manager.
func Frontend() *frontend.API {
	return &frontend.API{
		GroupVersion: packagesv1alpha1.GroupVersion, Kinds: packagesv1alpha1.Kinds(), New: newObject, Facts: factsOf,
		Patch: func(o frontend.Resource, reference string) string {
			return installPatch(o.(packagesv1alpha1.Install).InstallSpec(), reference)
		},
	}
}

// scheme is made when it is first used: most commands read no object.
var scheme = sync.OnceValues(func() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, packagesv1alpha1.AddToScheme(s)
})

// newObject implements frontend.API.New.
func newObject(kind string) (runtime.Object, error) {
	s, err := scheme()
	if err != nil {
		return nil, err
	}
	return s.New(packagesv1alpha1.GroupVersion.WithKind(kind))
}

// factsOf returns the facts of an install object, or of a Package.
func factsOf(o frontend.Resource) frontend.Facts {
	ready := o.GetCondition(v1.TypeReady)
	progress := []v1.ConditionReason{packagesv1alpha1.ReasonCreating, packagesv1alpha1.ReasonDeleting}
	f := frontend.Facts{Progresses: slices.Contains(progress, ready.Reason)}
	switch o := o.(type) {
	case packagesv1alpha1.Install:
		spec, status := o.InstallSpec(), o.InstallStatus()
		refusals := []string{ErrNotAllowed.Name, provide.ErrNoProvider.Name, provide.ErrAmbiguous.Name}
		f.IsInstall, f.Shares = true, o.PackageKind() == packagesv1alpha1.PackageInstallKind
		f.Provider, f.Reference, f.CRD = status.Provider, spec.Package, spec.CRD
		f.IsRefused = slices.Contains(refusals, string(ready.Reason))
		f.Package, f.IsInstalled = requestedPackage(o), status.PackageRecord != nil
		f.Conditions = status.ConditionedStatus.ConditionedStatus.Conditions
		if r := status.PackageRecord; r != nil {
			f.Record = &frontend.Reference{Kind: packagesv1alpha1.PackageKind, Namespace: r.Namespace, Name: r.Name}
		}
	case *packagesv1alpha1.Package:
		f.IsRecord, f.View = isRecord(o), viewOf(o)
		if !f.IsRecord {
			f.Kinds = kindsOf(o)
		}
	}
	return f
}

// viewOf returns the description of a Package. It is installed when its controller was started, or when it is ready
// without one.
func viewOf(p *packagesv1alpha1.Package) frontend.View {
	v := frontend.View{
		Package: controllerImage(p), Conditions: p.Status.ConditionedStatus.ConditionedStatus.Conditions,
		Permissions: p.Spec.Permissions.Rules, HasController: p.Spec.Controller.Deployment != nil,
		IsInstalled: p.Status.ControllerRef != nil || p.GetCondition(v1.TypeReady).Status == corev1.ConditionTrue,
		Presentation: xpkg.Presentation{
			Title: p.Spec.Title, Summary: p.Spec.OverviewShort, Description: p.Spec.Overview, Readme: p.Spec.Readme,
			Category: p.Spec.Category,
			Version:  p.Spec.Version, Company: p.Spec.Company, Keywords: p.Spec.Keywords, Website: p.Spec.Website,
			Source:  p.Spec.Source,
			License: p.Spec.License, PackageType: p.Spec.PackageType,
		},
	}
	if by := p.Status.ControllerRef; by != nil {
		v.Controller = &frontend.Reference{Kind: by.Kind, Namespace: by.Namespace, Name: by.Name}
	}
	for _, k := range p.Spec.CRDs {
		v.Defines = append(v.Defines, k.Kind+" of "+k.APIVersion)
	}
	return v
}

// kindsOf returns the kinds that a Package defines and depends on. A name that is no kind of a custom resource is
// ignored.
func kindsOf(p *packagesv1alpha1.Package) []dependency.KindRef {
	var out []dependency.KindRef
	add := func(text string) {
		if k, err := dependency.ParseKindRef(text); err == nil {
			out = append(out, k)
		}
	}
	for _, k := range p.Spec.CRDs {
		gvk := schema.FromAPIVersionAndKind(k.APIVersion, k.Kind)
		add(dependency.KindRef{Name: gvk.Kind, Group: gvk.Group, Version: gvk.Version}.String())
	}
	for _, d := range p.Spec.DependsOn {
		add(d.CRD)
	}
	return out
}

// requestedPackage returns the package that an install object names, with its source, or the kind that it names, after
// the package that was selected for it.
func requestedPackage(in packagesv1alpha1.Install) string {
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

// controllerImage returns the image of the controller of a Package: with its digest once it runs, and "" without a
// controller.
func controllerImage(p *packagesv1alpha1.Package) string {
	if p.Status.RuntimeImage != "" || p.Spec.Controller.Deployment == nil {
		return p.Status.RuntimeImage
	}
	var spec appsv1.DeploymentSpec
	if json.Unmarshal(p.Spec.Controller.Deployment.Spec.Raw, &spec) != nil || len(spec.Template.Spec.Containers) == 0 {
		return ""
	}
	return spec.Template.Spec.Containers[0].Image
}

// installPatch returns the patch of an install object that selects a package.
func installPatch(spec *packagesv1alpha1.InstallSpec, reference string) string {
	fields := []string{}
	if spec.CRD != "" {
		fields = append(fields, `"crd":null`)
	}
	name, below := strings.CutPrefix(reference, strings.TrimSuffix(spec.Source, "/")+"/")
	if spec.Source != "" && !below {
		fields = append(fields, `"source":null`)
	}
	return fmt.Sprintf(`{"spec":{%s}}`, strings.Join(append(fields, fmt.Sprintf(`"package":%q`, name)), ","))
}

// isRecord reports whether a Package records an install object. All other Packages were created by users.
func isRecord(p *packagesv1alpha1.Package) bool { return isOwnedByInstall(p) || isRestoredRecord(p) }

// isOwnerlessRecord reports whether a Package is a record without its owner reference, as some backups restore it. Its
// install object adopts it.
func isOwnerlessRecord(p *packagesv1alpha1.Package) bool {
	return !isOwnedByInstall(p) && isRestoredRecord(p)
}

// isRestoredRecord reports whether a Package has the annotation of the record of an install object with its name.
func isRestoredRecord(p *packagesv1alpha1.Package) bool {
	kind, rest, _ := strings.Cut(p.Annotations[state.AnnotationInstalledBy], "/")
	return slices.Contains(packagesv1alpha1.InstallKinds(), kind) && rest == p.Namespace+"/"+p.Name
}

func isOwnedByInstall(p *packagesv1alpha1.Package) bool {
	return slices.ContainsFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool {
		return slices.Contains(packagesv1alpha1.InstallKinds(), r.Kind)
	})
}

// listInstalls returns the install objects of a kind.
func listInstalls(ctx context.Context, reader client.Reader, kind string) ([]packagesv1alpha1.Install, error) {
	all, err := Frontend().List(ctx, reader, kind)
	out := make([]packagesv1alpha1.Install, len(all))
	for i, o := range all {
		out[i] = o.Resource.(packagesv1alpha1.Install)
	}
	return out, err
}
