package inventory

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// PatchMetadata changes the metadata of a package with the merge patch that change returns for the package as it is; an empty patch
// changes nothing. If the package is written meanwhile, it is read, and change is called again. Afterwards p is the package as it was written.
func PatchMetadata(ctx context.Context, cluster client.Client, p v1.Package, change func() (map[string]any, error)) error {
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
		return apiserver.Classify(err, "change %s", ShortName(p))
	})
}
