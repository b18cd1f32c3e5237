package firstgeneration

import (
	"context"
	"fmt"
	"slices"
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
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

var crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// remainsStep deletes the controllers of the former package manager, their cluster roles, and the objects of
// stacks.crossplane.io. The CRDs of stacks.crossplane.io stay.
func (m *Migration) remainsStep(s *snapshot) *migration.Step {
	step := &migration.Step{Title: "Delete the controllers of the former package manager", Done: true}
	for _, in := range s.installs {
		for _, d := range in.deployments {
			step.Details = append(step.Details, fmt.Sprintf("Deployment %s/%s, which has no pods", d.Namespace, d.Name))
		}
		if in.isEarlier() {
			step.Details = append(step.Details, in.describe()+" and its record, which became objects of "+packagesv1alpha1.Group)
		}
	}
	step.Done = len(step.Details) == 0
	step.Run = func(ctx context.Context, _ migration.Report) error {
		for _, in := range s.installs {
			if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return m.deleteRemains(ctx, in) }); err != nil {
				return err
			}
		}
		return nil
	}
	return step
}

// deleteRemains deletes what the former package manager created for an install object.
func (m *Migration) deleteRemains(ctx context.Context, in *install) error {
	if err := m.deleteRoles(ctx, in); err != nil {
		return err
	}
	for _, kind := range []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("Deployment"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		rbacv1.SchemeGroupVersion.WithKind("Role"), corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
	} {
		if err := m.deleteOwned(ctx, in, kind); err != nil {
			return err
		}
	}
	if !in.isEarlier() {
		return nil
	}
	for _, o := range []*unstructured.Unstructured{in.record, in.object} {
		if o == nil {
			continue
		}
		if err := m.deleteEarlier(ctx, in, o); err != nil {
			return err
		}
	}
	return nil
}

// deleteOwned deletes the objects of a kind in the namespace of an install object that the former package manager created for it,
// except for those that the manager has created or adopted.
func (m *Migration) deleteOwned(ctx context.Context, in *install, kind schema.GroupVersionKind) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := m.Client.List(ctx, list, client.InNamespace(in.namespace)); err != nil {
		return fmt.Errorf("list the %ss of %s: %w", kind.Kind, in.namespace, err)
	}
	for i := range list.Items {
		o := &list.Items[i]
		stopped := kind.Kind == "Deployment" && slices.ContainsFunc(in.deployments, func(d appsv1.Deployment) bool { return d.UID == o.UID })
		if o.Annotations[plan.ContentDigestAnnotation] != "" || !stopped && !in.created(o) {
			continue
		}
		o.SetGroupVersionKind(kind)
		precondition := client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion}
		if err := client.IgnoreNotFound(m.Client.Delete(ctx, o, precondition, client.PropagationPolicy(metav1.DeletePropagationBackground))); err != nil {
			return fmt.Errorf("delete %s %s/%s: %w", kind.Kind, o.Namespace, o.Name, err)
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
	err = m.Client.Delete(ctx, current, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
	}
	return nil
}

// deleteRoles deletes the cluster roles of the controller of an install object. Those of users stay.
func (m *Migration) deleteRoles(ctx context.Context, in *install) error {
	parent := client.MatchingLabels{labelParentNamespace: in.namespace, labelParentName: in.name}
	for _, kind := range []string{"ClusterRoleBinding", "ClusterRole"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := m.Client.List(ctx, list, parent); err != nil {
			return fmt.Errorf("list the %ss of %s: %w", kind, in.describe(), err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			o.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
			if kind == "ClusterRole" && !strings.HasSuffix(o.Name, ":system") || !in.created(o) {
				continue
			}
			if err := client.IgnoreNotFound(m.Client.Delete(ctx, o, client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion})); err != nil {
				return fmt.Errorf("delete %s %s: %w", kind, o.Name, err)
			}
		}
	}
	return nil
}
