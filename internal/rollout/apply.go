package rollout

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/bootstrap"
)

// Apply applies manifests in their order, and calls applied with the kind and the name of each. Existing objects are
// updated. A manifest can be of a kind that a former one defines.
func Apply(
	ctx context.Context, cluster client.Client, manifests []bootstrap.Object, applied func(name string) error,
) error {
	for _, o := range manifests {
		plain, err := bootstrap.Plain(o)
		if err != nil {
			return err
		}
		u := &unstructured.Unstructured{Object: plain}
		name := u.GetKind() + " " + u.GetName()
		err = cluster.Apply(
			ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(bootstrap.FieldManager), client.ForceOwnership,
		)
		if err != nil {
			return fmt.Errorf("apply %s: %w", name, err)
		}
		if err := applied(name); err != nil {
			return err
		}
	}
	return nil
}
