package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

const (
	// safeStart is the capability of a program that can do without its resources.
	safeStart = "safe-start"
	// managed is the kind that defines managed resources which can be switched off.
	managed = "ManagedResourceDefinition"
	// stateActive is the state of one that is switched on.
	stateActive = "Active"

	// awaitingPoll is how often one looks whether any was.
	awaitingPoll = 10 * time.Second
)

// awaits reports whether nothing needs the program of a revision yet: it can start
// safely, it brings managed resources that can be switched off, and none was switched
// on. A program that ran once goes on, whatever is switched off later.
func (r *revisionReconciler) awaits(ctx context.Context, rev v1.PackageRevision, meta xpkg.Meta, objects *desired.Objects) (bool, error) {
	if r.kind != v1.ProviderKind || !meta.HasCapability(safeStart) || rev.GetCondition(v1.TypeRuntimeActive).Status == corev1.ConditionTrue {
		return false, nil
	}
	mine := slices.DeleteFunc(objects.Refs(), func(ref plan.Ref) bool { return ref.Kind != managed })
	if len(mine) == 0 {
		return false, nil
	}
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(schema.FromAPIVersionAndKind(mine[0].APIVersion, managed+"List"))
	if err := r.live.List(ctx, all); err != nil {
		return false, fmt.Errorf("see which managed resources are switched on: %w", err)
	}
	for _, d := range all.Items {
		state, _, err := unstructured.NestedString(d.Object, "spec", "state")
		if err == nil && state == stateActive && slices.ContainsFunc(mine, func(ref plan.Ref) bool { return ref.Name == d.GetName() }) {
			return false, nil
		}
	}
	return true, nil
}
