package apply

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Delete deletes an object with the resourceVersion that was read: it fails with a conflict if the
// object has changed since. It succeeds if the object does not exist, and does not wait for finalizers.
func (c *Cluster) Delete(ctx context.Context, ref plan.Ref, uid types.UID, resourceVersion string) error {
	path, err := collection(ref)
	if err != nil {
		return err
	}
	options, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &resourceVersion},
	})
	if err != nil {
		return err
	}
	end, err := c.begin(ctx, Attempt{Ref: ref, Desired: "deleted", Base: resourceVersion})
	if err != nil {
		return err
	}
	_, _, err = c.call(ctx, writeMetadata, func() (*rest.Request, int, error) {
		req := c.rest.Delete().AbsPath(path, ref.Name).SetHeader("Accept", metadataObject).SetHeader("Content-Type", runtime.ContentTypeJSON)
		return req.Body(options), len(options), nil
	})
	end("", err)
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("delete %s %s: %w", ref.Kind, ref.Name, err)
	}
	return classify(err, "delete %s %s", ref.Kind, ref.Name)
}
