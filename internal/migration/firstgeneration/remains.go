package firstgeneration

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

var crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// remainingKinds are the kinds of what the former package manager created for a controller, in the order in which they
// are deleted: permissions end first.
var remainingKinds = []schema.GroupVersionKind{
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), rbacv1.SchemeGroupVersion.WithKind("Role"),
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"), appsv1.SchemeGroupVersion.WithKind("Deployment"),
}

// remains returns what the former package manager created for the controller of each object with one.
func (m *Migration) remains(ctx context.Context, s *snapshot) (map[*install][]metav1.PartialObjectMetadata, error) {
	out := map[*install][]metav1.PartialObjectMetadata{}
	for _, kind := range remainingKinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := m.Client.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list %ss: %w", kind.Kind, err)
		}
		for _, o := range list.Items {
			o.SetGroupVersionKind(kind)
			for _, in := range s.withControllers() {
				if in.isRemain(&o) {
					out[in] = append(out[in], o)
				}
			}
		}
	}
	return out, nil
}

// isRemain reports whether the former package manager created an object for the controller of an install object, and
// the manager has not adopted it. The cluster roles of users stay.
func (in *install) isRemain(o *metav1.PartialObjectMetadata) bool {
	switch {
	case o.Annotations[plan.ContentDigestAnnotation] != "":
		return false
	case o.Namespace == "":
		labels := o.Labels
		return labels[labelParentNamespace] == in.namespace && labels[labelParentName] == in.name && in.created(o) &&
			(o.Kind != "ClusterRole" || strings.HasSuffix(o.Name, ":system"))
	case o.Namespace != in.namespace:
		return false
	}
	return in.created(o)
}

// remainsStep deletes the controllers of the former package manager with their permissions, and the objects of
// stacks.crossplane.io. The CRDs of stacks.crossplane.io stay.
func (m *Migration) remainsStep(ctx context.Context, s *snapshot) (*migration.Step, error) {
	step := &migration.Step{Title: "Delete the controllers of the former package manager"}
	remains, err := m.remains(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, in := range s.withControllers() {
		n := 0
		for _, o := range remains[in] {
			if o.Kind == "Deployment" {
				step.Details = append(step.Details, fmt.Sprintf("Deployment %s/%s, which has no pods", o.Namespace, o.Name))
			} else {
				n++
			}
		}
		if n > 0 {
			step.Details = append(
				step.Details,
				fmt.Sprintf("%s with the permissions of the controller of %s", wording.Count(n, "object"), in.describe()),
			)
		}
		if in.isEarlier() {
			step.Details = append(step.Details, in.describe()+" and its record, which became objects of "+packagesv1alpha1.Group)
		}
	}
	step.Done = len(step.Details) == 0
	step.Run = func(ctx context.Context, _ migration.Report) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return m.deleteRemains(ctx, s) })
	}
	return step, nil
}

// deleteRemains deletes what the former package manager created for controllers, and the objects of
// stacks.crossplane.io.
func (m *Migration) deleteRemains(ctx context.Context, s *snapshot) error {
	remains, err := m.remains(ctx, s)
	if err != nil {
		return err
	}
	for _, in := range s.withControllers() {
		for _, o := range remains[in] {
			precondition := client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion}
			if err := client.IgnoreNotFound(m.Client.Delete(
				ctx, &o, precondition, client.PropagationPolicy(metav1.DeletePropagationBackground),
			)); err != nil {
				return fmt.Errorf("delete %s %s: %w", o.Kind, strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"), err)
			}
		}
		if !in.isEarlier() {
			continue
		}
		for _, o := range []*unstructured.Unstructured{in.record, in.object} {
			if o == nil {
				continue
			}
			if err := m.deleteEarlier(ctx, in, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteEarlier deletes an object of stacks.crossplane.io, whose finalizers no program removes any more.
func (m *Migration) deleteEarlier(ctx context.Context, in *install, o *unstructured.Unstructured) error {
	current, err := m.get(ctx, in.group, o.GetKind(), o.GetNamespace(), o.GetName())
	if err != nil || current == nil || current.GetUID() != o.GetUID() {
		return err
	}
	before := current.DeepCopy()
	current.SetFinalizers(nil)
	if err := m.patch(ctx, before, current); err != nil {
		return err
	}
	uid := current.GetUID()
	err = m.Client.Delete(
		ctx, current, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground),
	)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
	}
	return nil
}
