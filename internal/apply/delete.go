package apply

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Delete deletes an object as it was read: it fails if the object has changed since. It succeeds if the
// object does not exist.
func Delete(ctx context.Context, c client.Client, ref plan.Ref, uid types.UID, resourceVersion string) error {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(ref.GroupVersionKind())
	o.SetNamespace(ref.Namespace)
	o.SetName(ref.Name)
	err := client.IgnoreNotFound(c.Delete(ctx, o, client.Preconditions{UID: &uid, ResourceVersion: &resourceVersion}))
	// The API server returns an object that has finalizers, and the client reports that it cannot decode
	// its kind. The object is being deleted.
	if err == nil || runtime.IsNotRegisteredError(err) {
		return nil
	}
	return fmt.Errorf("delete %s %s: %w", ref.Kind, ref.Name, err)
}
