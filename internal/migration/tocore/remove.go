package tocore

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/generation"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// owned returns the metadata of the objects of the manager that exist, without the namespace and the CRDs that core has
// too. With the API of transactions, which no other manager carries out, their records are deleted; so is the history.
func (m *mover) owned(ctx context.Context) ([]*metav1.PartialObjectMetadata, error) {
	var out []*metav1.PartialObjectMetadata
	seen := map[plan.Ref]bool{}
	add := func(gvk schema.GroupVersionKind, namespace, name string) error {
		ref := plan.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: namespace, Name: name}
		if seen[ref] {
			return nil
		}
		seen[ref] = true
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(gvk)
		err := m.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, o)
		if err == nil {
			out = append(out, o)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read %s %s: %w", gvk.Kind, name, err)
		}
		return nil
	}
	if err := add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), m.Namespace, bootstrap.Lease); err != nil {
		return nil, err
	}
	// A running manager deletes it with the ChangePolicy.
	for _, kind := range []string{"ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"} {
		if err := add(admissionv1.SchemeGroupVersion.WithKind(kind), "", fence.ChangesName); err != nil {
			return nil, err
		}
	}
	generations := &metav1.PartialObjectMetadataList{}
	generations.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ControllerRevisionList"))
	err := m.Client.List(ctx, generations, client.InNamespace(m.Namespace), client.HasLabels{generation.Label})
	if err != nil {
		return nil, fmt.Errorf("list generations: %w", err)
	}
	for i := range generations.Items {
		out = append(out, &generations.Items[i])
	}
	for _, namespaced := range []bool{false, true} {
		objects, err := bootstrap.Manifests(bootstrap.Options{
			Namespace: m.Namespace, Version: "latest", Namespaced: namespaced,
		})
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			gvk := o.GetObjectKind().GroupVersionKind()
			isOurs := strings.HasSuffix(o.GetName(), "."+v1alpha1.Group)
			if gvk.Kind == "Namespace" || gvk.Kind == plan.DefinitionKind && !isOurs {
				continue
			}
			if err := add(gvk, o.GetNamespace(), o.GetName()); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// last returns the objects that lose the traces of the manager at the end: until core manages the packages, a manager
// that is started again needs the marks on its CRDs and its claim of the Lock.
func (m *mover) last(ctx context.Context) ([]target, error) {
	var out []target
	for _, gvk := range []schema.GroupVersionKind{
		schema.FromAPIVersionAndKind("apiextensions.k8s.io/v1", plan.DefinitionKind), v1beta1.GroupVersion.WithKind("Lock"),
	} {
		some, err := m.withTraces(ctx, gvk)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// remaining describes the objects of the manager.
func (m *mover) remaining(ctx context.Context) ([]string, error) {
	owned, err := m.owned(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	generations := 0
	for _, o := range owned {
		if o.Labels[generation.Label] != "" {
			generations++
			continue
		}
		out = append(out, fmt.Sprintf("%s %s is deleted", o.Kind, o.Name))
	}
	if generations > 0 {
		out = append(out, "the history of all packages is deleted: "+wording.Count(generations, "generation"))
	}
	last, err := m.last(ctx)
	if err != nil {
		return nil, err
	}
	traced, err := countByKind(last)
	if err != nil {
		return nil, err
	}
	for _, t := range traced {
		out = append(out, t+" without annotations and labels of xpkg.dev")
	}
	return out, nil
}

// remove deletes the objects of the manager, and its traces on all others. The objects are deleted after that: while
// they exist, the step is not done.
func (m *mover) remove(ctx context.Context, report migration.Report) error {
	last, err := m.last(ctx)
	if err != nil {
		return err
	}
	if err := m.writeAll(ctx, report, last); err != nil {
		return err
	}
	owned, err := m.owned(ctx)
	if err != nil {
		return err
	}
	for _, o := range owned {
		err := m.Client.Delete(
			ctx, o, client.Preconditions{UID: new(o.GetUID())}, client.PropagationPolicy(metav1.DeletePropagationBackground),
		)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s: %w", o.Kind, o.Name, err)
		}
	}
	return nil
}
