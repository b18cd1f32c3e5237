// Package serverside writes objects by server-side apply.
package serverside

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Apply writes an object by server-side apply as a field manager, and updates o to the result. The object must
// have its apiVersion and kind. A conflict with another field manager is an error, unless opts contain
// [client.ForceOwnership].
func Apply(
	ctx context.Context, c client.Client, o client.Object, fieldManager string, opts ...client.PatchOption,
) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return c.Patch(ctx, o, client.RawPatch(types.ApplyPatchType, raw), append(opts, client.FieldOwner(fieldManager))...)
}
