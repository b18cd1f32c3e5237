package firstgeneration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/state"
)

// preparePackage removes the finalizers of the former package manager from a Package of a user.
func (m *Migration) preparePackage(ctx context.Context, p *install) error {
	current, err := m.get(ctx, p.group, p.kind, p.namespace, p.name)
	if err != nil || current == nil {
		return err
	}
	before := current.DeepCopy()
	removeFormerFinalizers(current)
	return m.patch(ctx, before, current)
}

// isReplaced reports whether the install object must get another package.
func (in *install) isReplaced() bool {
	was, _, _ := unstructured.NestedString(in.object.Object, "spec", "package")
	return was != in.spec.Package
}

// moved returns the object of packages.crossplane.io of an install object.
func (in *install) moved() *unstructured.Unstructured {
	if in.successor != nil {
		return in.successor.object
	}
	return in.object
}

func (in *install) needsPreparation() bool {
	return len(formerFinalizers(in.moved())) > 0 ||
		slices.ContainsFunc(in.kept, func(o *unstructured.Unstructured) bool { return !in.isKeptBy(o, in.moved()) })
}

// isKeptBy reports whether the manager recognizes a record or a StackDefinition as that of an install object.
func (in *install) isKeptBy(o, current *unstructured.Unstructured) bool {
	return len(formerFinalizers(o)) == 0 &&
		slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
			return r.Kind == in.target() && r.Name == in.name && r.UID == current.GetUID()
		})
}

// keep makes an install object the controller of a record or a StackDefinition. The owners that users have added stay.
func (in *install) keep(o, current *unstructured.Unstructured) {
	removeFormerFinalizers(o)
	o.SetOwnerReferences(append(slices.DeleteFunc(o.GetOwnerReferences(), isFirstGeneration), metav1.OwnerReference{
		APIVersion: packagesv1alpha1.GroupVersion.String(), Kind: in.target(), Name: in.name, UID: current.GetUID(),
		Controller: new(true), BlockOwnerDeletion: new(true),
	}))
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[state.AnnotationInstalledBy] = in.installedBy()
	o.SetAnnotations(annotations)
}

// formerFinalizers returns the finalizers of an object that no manager of xpkg and no user wrote.
func formerFinalizers(o client.Object) []string {
	return slices.DeleteFunc(
		slices.Clone(o.GetFinalizers()), func(f string) bool { return !strings.Contains(f, "crossplane.io") },
	)
}

// prepare prepares one install object, and what it keeps.
func (m *Migration) prepare(ctx context.Context, in *install) error {
	current, err := m.ensureInstall(ctx, in)
	if err != nil {
		return err
	}
	before := current.DeepCopy()
	if in.isReplaced() || in.isEarlier() {
		raw, err := json.Marshal(in.spec)
		if err != nil {
			return err
		}
		spec := map[string]any{}
		if err := json.Unmarshal(raw, &spec); err != nil {
			return err
		}
		current.Object["spec"] = spec
	}
	removeFormerFinalizers(current)
	if err := m.patch(ctx, before, current); err != nil {
		return err
	}
	for _, k := range keptKinds() {
		o, err := m.get(ctx, k.Group, k.Kind, in.namespace, in.name)
		if err != nil {
			return err
		}
		if err := refuse(in.ownFinding(o)); err != nil {
			return err
		}
		if o == nil || in.isKeptBy(o, current) {
			continue
		}
		before := o.DeepCopy()
		in.keep(o, current)
		if err := m.patch(ctx, before, o); err != nil {
			return err
		}
	}
	return nil
}

// refuse returns the error for a problem that arose after the plan, or nil.
func refuse(f *migration.Finding) error {
	if f == nil {
		return nil
	}
	return migration.Refuse([]migration.Finding{*f})
}

func removeFormerFinalizers(o client.Object) {
	former := formerFinalizers(o)
	o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return slices.Contains(former, f) }))
}

// ensureInstall returns the install object of packages.crossplane.io, and creates it for one of stacks.crossplane.io.
func (m *Migration) ensureInstall(ctx context.Context, in *install) (*unstructured.Unstructured, error) {
	current, err := m.get(ctx, packagesv1alpha1.Group, in.target(), in.namespace, in.name)
	if err != nil {
		return nil, err
	}
	if current != nil {
		return current, in.checkMoved(current)
	}
	if !in.isEarlier() {
		return nil, fmt.Errorf("%s was deleted meanwhile: run the command again", in.describe())
	}
	current = &unstructured.Unstructured{Object: map[string]any{}}
	current.SetGroupVersionKind(packagesv1alpha1.GroupVersion.WithKind(in.target()))
	current.SetNamespace(in.namespace)
	current.SetName(in.name)
	current.SetLabels(in.object.GetLabels())
	annotations := in.object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, corev1.LastAppliedConfigAnnotation) // It describes the former object.
	annotations[annotationMovedFrom] = string(in.object.GetUID())
	current.SetAnnotations(annotations)
	raw, err := json.Marshal(in.spec)
	if err != nil {
		return nil, err
	}
	spec := map[string]any{}
	if err := json.Unmarshal(raw, &spec); err != nil {
		return nil, err
	}
	current.Object["spec"] = spec
	err = m.Client.Create(ctx, current, fieldManager)
	if apierrors.IsAlreadyExists(err) {
		if other, readErr := m.get(ctx, packagesv1alpha1.Group, in.target(), in.namespace, in.name); readErr != nil {
			return nil, readErr
		} else if other != nil {
			return other, in.checkMoved(other)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create %s %s/%s: %w", in.target(), in.namespace, in.name, err)
	}
	return current, nil
}

// checkMoved fails with MigrationRefused if an object of packages.crossplane.io is neither an install object that stays
// nor its copy.
func (in *install) checkMoved(current *unstructured.Unstructured) error {
	if in.isEarlier() {
		return refuse(in.copyFinding(current))
	}
	return nil
}

// patch writes the difference of two states of an object, if there is one.
func (m *Migration) patch(ctx context.Context, before, after *unstructured.Unstructured) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	plain, err := client.MergeFrom(before).Data(after)
	if err != nil || string(plain) == "{}" {
		return err
	}
	if err := m.Client.Patch(ctx, after, patch, fieldManager); err != nil {
		return fmt.Errorf("change %s %s/%s: %w", after.GetKind(), after.GetNamespace(), after.GetName(), err)
	}
	return nil
}
