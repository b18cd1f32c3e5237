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
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/desired"
)

const definitionResource = "stackdefinitions"

// definitionGroups returns the API groups in which templating controllers read their StackDefinition: those before
// version 0.4.0 read the second one.
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

// isDefinitionOf reports whether a StackDefinition is that of an install object. Without its owners, as in a backup,
// the annotation tells.
func isDefinitionOf(d metav1.Object, in packagesv1alpha1.Install) bool {
	if c := metav1.GetControllerOf(d); c != nil && !controls(in, d) {
		return false
	}
	return isMarked(d, in)
}

// checkDefinition fails with PackageRecordNotOwned if a user has created a StackDefinition with the name of an install
// object.
func (b *Base) checkDefinition(ctx context.Context, in packagesv1alpha1.Install) error {
	for _, group := range definitionGroups() {
		live := newDefinition(in, group)
		err := b.API.Live.Get(ctx, client.ObjectKeyFromObject(live), live)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the StackDefinition %s: %w", live.GetName(), err)
		}
		// A former package manager owns its StackDefinitions, which are migrated.
		if len(live.GetOwnerReferences()) == 0 && !isDefinitionOf(live, in) {
			return definitionExists(live)
		}
	}
	return nil
}

func definitionExists(d *unstructured.Unstructured) error {
	return ErrRecordExists.New(
		nil, "the StackDefinition %s of %s exists, and is not that of this object", d.GetName(), d.GroupVersionKind().Group,
	)
}

// ensureDefinition creates the StackDefinition of an install object in each group, or restores it, and returns the one
// of packages.crossplane.io as the controller of other objects. It fails with PackageRecordNotOwned if the
// StackDefinition is that of a user or of another object.
func (b *Base) ensureDefinition(
	ctx context.Context, in packagesv1alpha1.Install, spec packagesv1alpha1.StackDefinitionSpec,
) (metav1.OwnerReference, error) {
	content, err := normalized(spec)
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	var owner metav1.OwnerReference
	for _, group := range definitionGroups() {
		want := newDefinition(in, group)
		want.SetOwnerReferences([]metav1.OwnerReference{ownerReference(in, true)})
		want.SetAnnotations(map[string]string{state.AnnotationInstalledBy: state.InstalledBy(in)})
		want.Object["spec"] = content
		uid, err := b.ensureDefinitionIn(ctx, in, want)
		switch {
		case group == packagesv1alpha1.EarlierGroup && meta.IsNoMatchError(err):
			// A user has deleted this CRD, and needs no controller that reads it.
		case err != nil:
			return metav1.OwnerReference{}, err
		case group == packagesv1alpha1.Group:
			owner = metav1.OwnerReference{
				APIVersion: want.GetAPIVersion(), Kind: want.GetKind(), Name: want.GetName(), UID: uid, Controller: new(true),
				BlockOwnerDeletion: new(true),
			}
		}
	}
	return owner, nil
}

func newDefinition(in packagesv1alpha1.Install, group string) *unstructured.Unstructured {
	d := &unstructured.Unstructured{Object: map[string]any{}}
	d.SetGroupVersionKind(schema.GroupVersionKind{
		Group: group, Version: packagesv1alpha1.GroupVersion.Version, Kind: packagesv1alpha1.StackDefinitionKind,
	})
	d.SetNamespace(in.GetNamespace())
	d.SetName(in.GetName())
	return d
}

// ensureDefinitionIn creates or restores a StackDefinition, and returns its UID.
func (b *Base) ensureDefinitionIn(
	ctx context.Context, in packagesv1alpha1.Install, want *unstructured.Unstructured,
) (types.UID, error) {
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
	case !isDefinitionOf(live, in):
		return "", definitionExists(live)
	case live.GetDeletionTimestamp() != nil:
		return "", requeue.ErrStale
	case controls(in, live) && live.GetAnnotations()[state.AnnotationInstalledBy] != "" &&
		sameJSON(live.Object["spec"], want.Object["spec"]):
		return live.GetUID(), nil
	}
	live.Object["spec"] = want.Object["spec"]
	live.SetOwnerReferences(want.GetOwnerReferences())
	live.SetAnnotations(desired.Overlay(live.GetAnnotations(), want.GetAnnotations()))
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
