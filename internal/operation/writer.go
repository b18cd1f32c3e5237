package operation

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// writer writes packages on behalf of a user. It records the transaction that writes a package, or removes that of a
// former write.
type writer struct {
	client.Client
	frontend    *frontend.API
	transaction string
}

func (w writer) create(ctx context.Context, p v1.Package) error {
	return w.write(p, func() error { return w.Create(ctx, p, client.FieldOwner(plan.FieldManager)) })
}

// update updates a package that was not written since it was read.
func (w writer) update(ctx context.Context, p v1.Package) error {
	return w.write(p, func() error { return w.Update(ctx, p, client.FieldOwner(plan.FieldManager)) })
}

// delete deletes a package that was not written since it was read, with an answer what happens to its custom resources.
// Objects are deleted after the package: with foreground deletion, the runtime would lose its permissions before its
// custom resources are deleted.
func (w writer) delete(ctx context.Context, p v1.Package, answer revision.OnDelete) error {
	if text := answer.String(); text != "" && p.GetAnnotations()[v1.AnnotationOnDelete] != text {
		p.SetAnnotations(desired.Overlay(p.GetAnnotations(), map[string]string{v1.AnnotationOnDelete: text}))
		if err := w.update(ctx, p); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	propagation := metav1.DeletePropagationBackground
	if answer.Orphan && !controllerutil.ContainsFinalizer(p, v1.FinalizerRuntimeProtection) {
		propagation = metav1.DeletePropagationOrphan // Another package manager does not know the annotation.
	}
	uid, version := p.GetUID(), p.GetResourceVersion()
	err := w.Delete(
		ctx, p, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(propagation),
	)
	return client.IgnoreNotFound(err)
}

// write writes a package, whose type the client removes.
func (w writer) write(p v1.Package, write func() error) error {
	revision.SetTransaction(p, w.transaction)
	kind := p.GetObjectKind().GroupVersionKind()
	defer p.GetObjectKind().SetGroupVersionKind(kind)
	return write()
}

// leaveTransaction takes a package out of the transaction that has written it, which then does not return it to its
// former state. It fails with PlanMoved if the package has been changed or deleted since it was read.
func leaveTransaction(ctx context.Context, cluster client.Client, p v1.Package) error {
	uid, generation := p.GetUID(), p.GetGeneration()
	err := patchMetadata(ctx, cluster, p, func() (map[string]any, error) {
		if p.GetUID() != uid || p.GetGeneration() != generation {
			return nil, changedMeanwhile(p)
		}
		if revision.TransactionOf(p) == "" {
			return nil, nil
		}
		return map[string]any{"annotations": map[string]any{revision.AnnotationTransaction: nil}}, nil
	})
	if apierrors.IsNotFound(err) {
		return changedMeanwhile(p)
	}
	return err
}

// changedMeanwhile returns the error of a package that has been changed or deleted since it was read.
func changedMeanwhile(p v1.Package) error {
	return planner.ErrPlanMoved.New(nil, "another client has changed or deleted %s meanwhile", inventory.ShortName(p)).
		WithDo("Run the command again.")
}

// patchMetadata changes the metadata of a package with the merge patch that change returns for the package as it is; an
// empty patch changes nothing. If the package is written meanwhile, it is read, and change is called again. Afterwards
// p is the package as it was written.
func patchMetadata(
	ctx context.Context, cluster client.Client, p v1.Package, change func() (map[string]any, error),
) error {
	kind := p.GetObjectKind().GroupVersionKind()
	return apiserver.RetryOnConflict(func() error {
		metadata, err := change()
		if err != nil || len(metadata) == 0 {
			return err
		}
		metadata["resourceVersion"] = p.GetResourceVersion()
		patch, err := json.Marshal(map[string]any{"metadata": metadata})
		if err != nil {
			return err
		}
		err = cluster.Patch(ctx, p, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(plan.FieldManager))
		if apierrors.IsConflict(err) {
			if read := cluster.Get(ctx, client.ObjectKeyFromObject(p), p); read != nil {
				err = read
			}
		}
		p.GetObjectKind().SetGroupVersionKind(kind)
		return apiserver.Classify(err, "change %s", inventory.ShortName(p))
	})
}
