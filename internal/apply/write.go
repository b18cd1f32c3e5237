package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/apply/limiter"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// write carries one change out, unless the brake stops it.
func (c *Cluster) write(ctx context.Context, ch plan.Change, content Content) (plan.Written, error) {
	end, err := c.begin(ctx, Attempt{Ref: ch.Ref, Desired: desiredState(ch), Base: ch.ResourceVersion})
	if err != nil {
		return plan.Written{}, err
	}
	written, version, err := c.carryOut(ctx, ch, content)
	c.definitions.record(ch.Ref)
	end(version, err)
	return written, err
}

// carryOut makes the calls of one change. It also returns the new resourceVersion, which is empty if it is unknown.
func (c *Cluster) carryOut(
	ctx context.Context, ch plan.Change, content Content,
) (w plan.Written, version string, err error) {
	path, err := collection(ch.Ref)
	if err != nil {
		return plan.Written{}, "", err
	}
	if c.dryRun && len(ch.Migrations) > 0 && ch.Ref.Kind == plan.DefinitionKind {
		// The API server would not reach its admission: custom resources are migrated before.
		if content, err = c.withStored(ctx, ch, content); err != nil {
			return plan.Written{}, "", err
		}
	}
	s := limiter.WriteObject
	if ch.MetadataOnly {
		s = limiter.WriteMetadata
	}
	raw, doubt, err := c.call(ctx, s, func() (*rest.Request, int, error) {
		body, err := body(ch, content)
		if err != nil {
			return nil, 0, err
		}
		req := c.verb(ch, path).Param("fieldManager", plan.FieldManager).SetHeader("Accept", metadataObject)
		if c.dryRun {
			req = req.Param("dryRun", metav1.DryRunAll)
		}
		return req.Body(body), len(body), nil
	})
	if doubt && (apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err)) {
		w, err = c.recognize(ctx, path, ch, err)
		return w, "", err
	}
	if err != nil {
		return plan.Written{}, "", err
	}
	var m partial
	if err := json.Unmarshal(raw, &m); err != nil {
		return plan.Written{}, "", err
	}
	return plan.Written{UID: m.Metadata.UID, Generation: m.Metadata.Generation}, m.Metadata.ResourceVersion, nil
}

func (c *Cluster) verb(ch plan.Change, path string) *rest.Request {
	switch {
	case ch.Action == plan.Create:
		return c.rest.Post().AbsPath(path).SetHeader("Content-Type", runtime.ContentTypeJSON)
	case ch.MetadataOnly:
		return c.rest.Patch(types.MergePatchType).AbsPath(path, ch.Ref.Name)
	}
	return c.rest.Put().AbsPath(path, ch.Ref.Name).SetHeader("Content-Type", runtime.ContentTypeJSON)
}

// body returns the JSON of a write.
func body(ch plan.Change, content Content) ([]byte, error) {
	if ch.MetadataOnly {
		return metadataPatch(ch)
	}
	raw, err := content(ch.Ref)
	if err != nil {
		return nil, err
	}
	out, err := whole(ch, raw)
	if err != nil {
		return nil, ErrContent.New(err, "write %s %s", ch.Ref.Kind, ch.Ref.Name)
	}
	return out, nil
}

// whole returns an object with the metadata of the plan instead of the metadata of the package. Status is
// removed, because packages do not write it.
func whole(ch plan.Change, content []byte) ([]byte, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(content, &object); err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	if object == nil {
		return nil, errors.New("content: null is not an object")
	}
	metadata, err := json.Marshal(metav1.ObjectMeta{
		Name: ch.Ref.Name, UID: ch.UID, ResourceVersion: ch.ResourceVersion,
		Labels: ch.Labels, Annotations: ch.Annotations, OwnerReferences: ch.Owners,
	})
	if err != nil {
		return nil, err
	}
	object["metadata"] = metadata
	delete(object, "status")
	return json.Marshal(object)
}

// metadataPatch returns a merge patch of metadata (RFC 7396). Its preconditions are the uid and the
// resourceVersion: the API server refuses to change either.
func metadataPatch(ch plan.Change) ([]byte, error) {
	metadata := map[string]any{"uid": ch.UID, "resourceVersion": ch.ResourceVersion, "ownerReferences": ch.Owners}
	if m := mapPatch(ch.Labels, ch.RemoveLabels); len(m) > 0 {
		metadata["labels"] = m
	}
	if m := mapPatch(ch.Annotations, ch.RemoveAnnotations); len(m) > 0 {
		metadata["annotations"] = m
	}
	return json.Marshal(map[string]any{"metadata": metadata})
}

// mapPatch sets keys, and removes others with null.
func mapPatch(put map[string]string, remove []string) map[string]any {
	out := make(map[string]any, len(put)+len(remove))
	for _, k := range remove {
		out[k] = nil
	}
	for k, v := range put {
		out[k] = v
	}
	return out
}

// DeleteAll deletes the objects of changes as Delete does, with concurrent calls. When a call fails, pending calls
// finish and no others start.
func (c *Cluster) DeleteAll(ctx context.Context, changes []plan.Change) error {
	group, going := errgroup.WithContext(ctx)
	group.SetLimit(limiter.MaxLimit)
	for _, ch := range changes {
		group.Go(func() error { return c.Delete(going, ch.Ref, ch.UID, ch.ResourceVersion) })
	}
	return group.Wait()
}

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
	end, err := c.begin(ctx, Attempt{Ref: ref, Desired: Deleted, Base: resourceVersion})
	if err != nil {
		return err
	}
	_, _, err = c.call(ctx, limiter.WriteMetadata, func() (*rest.Request, int, error) {
		req := c.rest.Delete().AbsPath(path, ref.Name).SetHeader("Accept", metadataObject).
			SetHeader("Content-Type", runtime.ContentTypeJSON)
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
