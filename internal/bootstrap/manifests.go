package bootstrap

import (
	"fmt"
	"maps"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xpkg-dev/xpkg/apis/crds"
	"github.com/xpkg-dev/xpkg/internal/consent"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Object is an object of the cluster.
type Object interface {
	metav1.Object
	runtime.Object
}

// Name is the name of every object, or its prefix.
const Name = "xpkg"

// FieldManager is the field manager of applied manifests.
const FieldManager = "xpkg-bootstrap"

// labels returns the labels of every object, which also select the pods.
func labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": Name, "app.kubernetes.io/component": "package-manager"}
}

// Manifests returns all objects in creation order. It fails with BootstrapOption if the
// options cannot be used.
func Manifests(o Options) ([]Object, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	definitions, err := Definitions()
	if err != nil {
		return nil, err
	}
	out := append([]Object{o.namespace()}, definitions...)
	out = append(out, labeled(fence.Runtimes(o.fenced()).Objects())...)
	for _, f := range append(consent.Fences(), fence.Approvals(), fence.Removals(o.remover())) {
		out = append(out, labeled(f.Objects())...)
	}
	if len(o.CoreAccounts) > 0 {
		// Core must not write packages after the manager has started to.
		out = append(out, CoreFence(o.CoreAccounts...)...)
	}
	out = append(out, o.serviceAccount())
	out = append(out, o.Roles()...)
	out = append(out, o.metricsService(), o.disruptionBudget())
	if !o.NoNetworkPolicy {
		out = append(out, o.networkPolicy())
	}
	return append(out, o.deployment()), nil
}

// fenced returns the objects that runtimes must not write.
func (o Options) fenced() fence.Manager {
	return fence.Manager{Namespace: o.Namespace, Lease: Lease, PolicyConfigMap: o.PermissionPolicy}
}

// remover returns the identity whose deletions need no answer.
func (o Options) remover() fence.Remover {
	return fence.Remover{Username: "system:serviceaccount:" + o.Namespace + ":" + Name, Namespace: o.Namespace}
}

// CoreFence returns the policy, and its binding, that deny these ServiceAccounts of Crossplane core writes of packages.
func CoreFence(accounts ...types.NamespacedName) []Object {
	return labeled(crossplane.Fence(accounts...))
}

// labeled returns the objects of a fence with the labels of the manager.
func labeled(
	policy *admissionv1.ValidatingAdmissionPolicy, binding *admissionv1.ValidatingAdmissionPolicyBinding,
) []Object {
	policy.Labels, binding.Labels = labels(), labels()
	return []Object{policy, binding}
}

// Definitions returns the CRDs of the package API exactly as the manager installs them,
// so that the manager recognizes them.
func Definitions() ([]Object, error) {
	all, err := crds.Packages()
	if err != nil {
		return nil, err
	}
	objects, err := desired.Definitions(all)
	if err != nil {
		return nil, err
	}
	var out []Object
	for i, d := range objects.Desired() {
		crd := all[i]
		if crd.Name != d.Ref.Name {
			return nil, fmt.Errorf("definition %s was converted to %s", crd.Name, d.Ref.Name)
		}
		crd.SetGroupVersionKind(schemaOf(d.Ref))
		if crd.Annotations == nil {
			crd.Annotations = map[string]string{}
		}
		maps.Copy(crd.Annotations, map[string]string{plan.ContentDigestAnnotation: d.Digest})
		out = append(out, crd)
	}
	return out, nil
}

func (o Options) namespace() Object {
	return &corev1.Namespace{TypeMeta: typeMeta(corev1.SchemeGroupVersion, "Namespace"), ObjectMeta: metav1.ObjectMeta{
		Name: o.Namespace,
	}}
}

func (o Options) serviceAccount() Object {
	return &corev1.ServiceAccount{
		TypeMeta: typeMeta(corev1.SchemeGroupVersion, "ServiceAccount"), ObjectMeta: o.metadata(Name),
	}
}

func (o Options) metadata(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.Namespace, Name: name, Labels: labels()}
}
