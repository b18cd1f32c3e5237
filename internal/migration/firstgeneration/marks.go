package firstgeneration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Labels with which the former package manager marked objects with the object for which it created them.
const (
	labelParentKind      = "core.crossplane.io/parent-kind"
	labelParentName      = "core.crossplane.io/parent-name"
	labelParentNamespace = "core.crossplane.io/parent-namespace"
	// prefixParent is the prefix of the labels of a CRD that name all of its packages.
	prefixParent = "parent.packages.crossplane.io/"
	// labelManagedBy on a CRD names the former package manager.
	labelManagedBy = "app.kubernetes.io/managed-by"
)

// managedBy are the values of labelManagedBy of former package managers.
var managedBy = []string{"package-manager", "stack-manager"}

// annotationMovedFrom on an install object has the UID of the object of stacks.crossplane.io from which the migration
// created it.
const annotationMovedFrom = "xpkg.dev/moved-from"

// isCopy reports whether the migration created an object of packages.crossplane.io from an install object of
// stacks.crossplane.io.
func (in *install) isCopy(o *unstructured.Unstructured) bool {
	uid := string(in.object.GetUID())
	return uid != "" && o.GetAnnotations()[annotationMovedFrom] == uid
}

// copyFinding returns the problem with an object of packages.crossplane.io that has the name of an install object of
// stacks.crossplane.io and is not its copy, or nil.
func (in *install) copyFinding(o *unstructured.Unstructured) *migration.Finding {
	if in.isCopy(o) {
		return nil
	}
	return &migration.Finding{
		Problem: fmt.Sprintf(
			"%s cannot become the %s %s/%s, which exists", in.describe(), in.target(), in.namespace, in.name,
		),
		Remedy: fmt.Sprintf("if both are one installation, run `%s`, and the %s gets the package of the %s; otherwise delete one of them, with its package, with `%s` or `%s`",
			kubectl("annotate", o, annotationMovedFrom+"="+string(in.object.GetUID())), in.target(), in.kind,
			kubectl("delete", in.object), kubectl("delete", o)),
	}
}

// isOwn reports whether a Package, a Stack or a StackDefinition is that of an install object: the former package
// manager, or the manager, has marked it. Without its owners, as in a backup, a label or an annotation tells.
func (in *install) isOwn(o *unstructured.Unstructured) bool {
	if c := metav1.GetControllerOf(o); c != nil && !isFirstGeneration(*c) {
		return false
	}
	uid := func(field string) string {
		uid, _, _ := unstructured.NestedString(in.object.Object, "status", field, "uid")
		return uid
	}
	return o.GetAnnotations()[state.AnnotationInstalledBy] == in.installedBy() ||
		slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
			return isFirstGeneration(r) && r.Name == in.name &&
				slices.Contains([]string{in.kind, in.target(), packagesv1alpha1.StackDefinitionKind}, r.Kind)
		}) ||
		in.isParent(o, in.kind, in.target()) ||
		o.GetUID() != "" && slices.Contains([]string{uid("packageRecord"), uid("stackRecord")}, string(o.GetUID()))
}

// ownFinding returns the problem with a Package, a Stack or a StackDefinition that has the name of an install object
// and is not its own, or nil.
func (in *install) ownFinding(o *unstructured.Unstructured) *migration.Finding {
	if o == nil || in.isOwn(o) {
		return nil
	}
	remedy := fmt.Sprintf("create it again with another name, and run `%s`", kubectl("delete", o))
	if metav1.GetControllerOf(o) == nil {
		effect := "the manager replaces its content"
		if o.GetKind() == kindStack {
			effect = "the migration deletes it"
		}
		remedy = fmt.Sprintf("if it belongs to the %s, run `%s`, and %s; otherwise %s",
			in.kind, kubectl("annotate", o, "--overwrite", state.AnnotationInstalledBy+"="+in.installedBy()), effect, remedy)
	}
	return &migration.Finding{
		Problem: fmt.Sprintf(
			"%s needs the name of the %s %s/%s of %s, which it does not own", in.describe(), o.GetKind(), in.namespace, in.name,
			o.GroupVersionKind().Group,
		),
		Remedy: remedy,
	}
}

// created reports whether the former package manager created an object of the namespace for the install object: the
// record owns the object, or its labels name the install object, as in a backup that was restored without owners.
func (in *install) created(o metav1.Object) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), in.owns) ||
		in.isParent(o, in.kind, packagesv1alpha1.PackageKind, kindStack)
}

// owns reports whether an owner reference names the record, or the install object.
func (in *install) owns(r metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(r.APIVersion, "/")
	return group == in.group && r.Name == in.name &&
		(in.record != nil && r.Kind == in.record.GetKind() || r.Kind == in.kind)
}

// isParent reports whether the labels of an object name an object of one of the kinds with the name of the install
// object.
func (in *install) isParent(o metav1.Object, kinds ...string) bool {
	labels := o.GetLabels()
	kind, _, _ := strings.Cut(labels[labelParentKind], ".")
	namespace := cmp.Or(labels[labelParentNamespace], o.GetNamespace())
	return isLabel(labels[labelParentName], in.name) && isLabel(namespace, in.namespace) &&
		(kind == "" || slices.ContainsFunc(kinds, func(k string) bool { return strings.EqualFold(k, kind) }))
}

// isLabel reports whether a label has a name as its value. The former package manager ends the value of a longer name
// with a hash.
func isLabel(value, name string) bool {
	const length, hash = 63, 6
	return value == name || len(name) > length && len(value) == length && strings.HasPrefix(name, value[:length-hash])
}

// isFirstGeneration reports whether an owner reference names an object of the first generation.
func isFirstGeneration(r metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(r.APIVersion, "/")
	return group == packagesv1alpha1.Group || group == packagesv1alpha1.EarlierGroup
}

// crdFinding returns the problem with a CRD that a record lists and that the Provider must not take over, or nil.
func (in *install) crdFinding(crd client.Object) *migration.Finding {
	if controls(crd.GetOwnerReferences(), in.provider) {
		return nil
	}
	problem := in.describe() + " has the CRD " + crd.GetName()
	if c := metav1.GetControllerOf(crd); c != nil && !isFirstGeneration(*c) {
		return &migration.Finding{
			Problem: fmt.Sprintf("%s, which belongs to %s %s", problem, c.Kind, c.Name), Remedy: "remove one of the two",
		}
	}
	if slices.ContainsFunc(crd.GetOwnerReferences(), isFirstGeneration) || crd.GetLabels()[labelParentName] != "" {
		return nil
	}
	for key, value := range crd.GetLabels() {
		if strings.HasPrefix(key, prefixParent) || key == labelManagedBy && slices.Contains(managedBy, value) {
			return nil
		}
	}
	return &migration.Finding{
		Problem: problem + ", which no package manager has created",
		Remedy: fmt.Sprintf("if the Provider %s may take it over, run `kubectl label crd %s --overwrite %s=%s`; otherwise remove it from spec.customresourcedefinitions of the record",
			in.provider, crd.GetName(), labelManagedBy, managedBy[0]),
	}
}

// providerFinding returns the problem with the Provider that gets the CRDs of an install object, or nil. P is nil if it
// does not exist.
func (in *install) providerFinding(p *v1.Provider) *migration.Finding {
	finding := func(remedy, format string, args ...any) *migration.Finding {
		return &migration.Finding{Problem: in.describe() + " needs the Provider " + in.provider + ", which " +
			fmt.Sprintf(format, args...), Remedy: remedy}
	}
	annotate := func(annotation string) string {
		return fmt.Sprintf("run `kubectl annotate providers.%s %s %s`", v1.Group, in.provider, annotation)
	}
	switch {
	case p == nil:
		return nil
	case p.DeletionTimestamp != nil:
		return finding("wait until it is deleted", "is being deleted")
	case in.isCluster():
		if p.Annotations[state.AnnotationInstalledBy] != in.installedBy() {
			return finding(annotate(state.AnnotationInstalledBy+"="+in.installedBy())+" if it is the same package", "exists")
		}
	case !oci.SameRepository(p.Spec.Package, in.reference.Name()):
		return finding("delete one of the two", "has the package %s", p.Spec.Package)
	case !revision.IsShared(p) && !in.isHandedOver():
		return finding(annotate(revision.AnnotationNamespacedInstalls+"="+revision.AllowInstalls)+
			", which stops its runtime", "is not shared with namespaces")
	}
	return nil
}

// isHandedOver reports whether the Provider of an install object has its CRDs.
func (in *install) isHandedOver() bool {
	for _, crd := range in.crds {
		if !controls(crd.OwnerReferences, in.provider) {
			return false
		}
	}
	return len(in.crds) > 0
}

// deploymentFinding returns the problem with a Deployment that has the name of the controller of an install object, and
// that no package manager has created, or nil.
func (in *install) deploymentFinding(d *appsv1.Deployment) *migration.Finding {
	controller := ""
	if in.record != nil {
		controller, _, _ = unstructured.NestedString(in.record.Object, "status", "controllerRef", "name")
	}
	if d.Namespace != in.namespace || d.Name != controller && (in.isCluster() || d.Name != in.name) {
		return nil
	}
	return in.runtimeFinding(d, "deployments.apps")
}

// runtimeFinding returns the problem with an object that has the name of one of the controller of an install object,
// and that no package manager has created, or nil.
func (in *install) runtimeFinding(o client.Object, resource string) *migration.Finding {
	if o.GetAnnotations()[plan.ContentDigestAnnotation] != "" || in.created(o) {
		return nil
	}
	command := fmt.Sprintf(
		"kubectl label --namespace %s %s %s %s=%s", in.namespace, resource, o.GetName(), labelParentName, in.name,
	)
	return &migration.Finding{
		Problem: fmt.Sprintf(
			"%s has a controller with the name of the object %s %s/%s, which no package manager has created", in.describe(),
			resource, in.namespace, o.GetName(),
		),
		Remedy: fmt.Sprintf(
			"if it belongs to the %s, run `%s`, and it is deleted; otherwise delete it or give it another name", in.kind,
			command,
		),
	}
}

// kubectl returns the command with a verb for an object of the first generation.
func kubectl(verb string, o *unstructured.Unstructured, more ...string) string {
	gvk := o.GroupVersionKind()
	words := []string{"kubectl", verb, "--namespace", o.GetNamespace(), strings.ToLower(gvk.Kind) + "s." +
		gvk.Group, o.GetName()}
	return strings.Join(append(words, more...), " ")
}
