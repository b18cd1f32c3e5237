package firstgen

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
)

const definitionResource = "stackdefinitions"

// definitionGroups returns the API groups in which templating controllers read their StackDefinition: those before version
// 0.4.0 read the second one.
func definitionGroups() []string {
	return []string{packagesv1alpha1.Group, packagesv1alpha1.EarlierGroup}
}

// definition returns the StackDefinition of an install object, which is empty if there is none.
func (b *Base) definition(ctx context.Context, in packagesv1alpha1.Install) (*packagesv1alpha1.StackDefinition, error) {
	d := &packagesv1alpha1.StackDefinition{}
	err := b.API.Client.Get(ctx, types.NamespacedName{Namespace: in.GetNamespace(), Name: in.GetName()}, d)
	return d, client.IgnoreNotFound(err)
}

// hasDefinition reports whether an install object controls a StackDefinition.
func (b *Base) hasDefinition(ctx context.Context, in packagesv1alpha1.Install) (bool, error) {
	d, err := b.definition(ctx, in)
	return err == nil && controls(in, d), err
}

// controls reports whether an install object is the controller of an object.
func controls(in packagesv1alpha1.Install, o metav1.Object) bool {
	c := metav1.GetControllerOf(o)
	return c != nil && c.Kind == in.PackageKind() && c.Name == in.GetName()
}

// ensureDefinition creates the StackDefinition of an install object in each group, or restores it, and returns the one of
// packages.crossplane.io as the controller of other objects. It fails with PackageRecordNotOwned if another object controls
// the StackDefinition.
func (b *Base) ensureDefinition(ctx context.Context, in packagesv1alpha1.Install, spec packagesv1alpha1.StackDefinitionSpec) (metav1.OwnerReference, error) {
	content, err := normalized(spec)
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	var owner metav1.OwnerReference
	for _, group := range definitionGroups() {
		want := newDefinition(in, group)
		want.SetOwnerReferences([]metav1.OwnerReference{ownerReference(in, true)})
		want.Object["spec"] = content
		uid, err := b.ensureDefinitionIn(ctx, in, want)
		switch {
		case group == packagesv1alpha1.EarlierGroup && meta.IsNoMatchError(err):
			// A user has deleted this CRD, and needs no controller that reads it.
		case err != nil:
			return metav1.OwnerReference{}, err
		case group == packagesv1alpha1.Group:
			owner = metav1.OwnerReference{
				APIVersion: want.GetAPIVersion(), Kind: want.GetKind(), Name: want.GetName(), UID: uid, Controller: new(true), BlockOwnerDeletion: new(true),
			}
		}
	}
	return owner, nil
}

func newDefinition(in packagesv1alpha1.Install, group string) *unstructured.Unstructured {
	d := &unstructured.Unstructured{Object: map[string]any{}}
	d.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: packagesv1alpha1.GroupVersion.Version, Kind: packagesv1alpha1.StackDefinitionKind})
	d.SetNamespace(in.GetNamespace())
	d.SetName(in.GetName())
	return d
}

// ensureDefinitionIn creates or restores a StackDefinition, and returns its UID.
func (b *Base) ensureDefinitionIn(ctx context.Context, in packagesv1alpha1.Install, want *unstructured.Unstructured) (types.UID, error) {
	live := want.DeepCopy()
	err := b.API.Live.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		if err = b.API.Client.Create(ctx, want); apierrors.IsAlreadyExists(err) {
			err = requeue.ErrStale
		}
		return want.GetUID(), err
	}
	if err != nil {
		return "", fmt.Errorf("read the StackDefinition %s: %w", want.GetName(), err)
	}
	switch {
	case metav1.GetControllerOf(live) != nil && !controls(in, live):
		return "", ErrRecordExists.New(nil, "the StackDefinition %s exists, and another object controls it", live.GetName())
	case live.GetDeletionTimestamp() != nil:
		return "", requeue.ErrStale
	case controls(in, live) && sameJSON(live.Object["spec"], want.Object["spec"]):
		return live.GetUID(), nil
	}
	live.Object["spec"] = want.Object["spec"]
	live.SetOwnerReferences(want.GetOwnerReferences())
	if err := b.API.Client.Update(ctx, live); err != nil {
		return "", fmt.Errorf("restore the StackDefinition %s: %w", live.GetName(), err)
	}
	return live.GetUID(), nil
}

// deleteDefinitions deletes the StackDefinitions that an install object controls.
func (b *Base) deleteDefinitions(ctx context.Context, in packagesv1alpha1.Install) error {
	for _, group := range definitionGroups() {
		live := newDefinition(in, group)
		err := b.API.Live.Get(ctx, client.ObjectKeyFromObject(live), live)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || err == nil && !controls(in, live) {
			continue
		}
		if err == nil {
			err = b.API.Delete(ctx, live)
		}
		if err != nil {
			return fmt.Errorf("delete the StackDefinition %s: %w", live.GetName(), err)
		}
	}
	return nil
}
