package contention

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Client returns a client whose calls of Create, Update, Patch and Delete, and updates of statuses,
// the brake limits. Creations and updates that are dry runs, and objects without a name, such as
// access reviews, are not limited.
func (b *Brake) Client(c client.Client) client.Client { return limitedClient{c, b} }

type limitedClient struct {
	client.Client
	brake *Brake
}

// Create implements [client.Client].
func (c limitedClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	write := func() error { return c.Client.Create(ctx, o, opts...) }
	options := client.CreateOptions{}
	if options.ApplyOptions(opts); len(options.DryRun) > 0 {
		return write()
	}
	return c.limit(ctx, o, "", "", write)
}

// Update implements [client.Client].
func (c limitedClient) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	write := func() error { return c.Client.Update(ctx, o, opts...) }
	options := client.UpdateOptions{}
	if options.ApplyOptions(opts); len(options.DryRun) > 0 {
		return write()
	}
	return c.limit(ctx, o, "", o.GetResourceVersion(), write)
}

// Patch implements [client.Client].
func (c limitedClient) Patch(
	ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	write := func() error { return c.Client.Patch(ctx, o, patch, opts...) }
	options := client.PatchOptions{}
	if options.ApplyOptions(opts); len(options.DryRun) > 0 {
		return write()
	}
	return c.limit(ctx, o, "", o.GetResourceVersion(), write)
}

// Delete implements [client.Client].
func (c limitedClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	ref, err := c.ref(o)
	if err != nil {
		return err
	}
	end, err := c.brake.Begin(ctx, apply.Attempt{Ref: ref, Desired: apply.Deleted, Base: o.GetResourceVersion()})
	if err != nil {
		return err
	}
	err = c.Client.Delete(ctx, o, opts...)
	end("", err)
	return err
}

// Status implements [client.Client].
func (c limitedClient) Status() client.SubResourceWriter {
	return limitedStatus{c.Client.Status(), c}
}

type limitedStatus struct {
	client.SubResourceWriter
	limited limitedClient
}

// Update implements [client.SubResourceWriter].
func (s limitedStatus) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	return s.limited.limit(
		ctx, o, statusPart, o.GetResourceVersion(), func() error { return s.SubResourceWriter.Update(ctx, o, opts...) },
	)
}

// limit makes a write that establishes the state of o, if the brake admits the write.
func (c limitedClient) limit(ctx context.Context, o client.Object, subresource, base string, write func() error) error {
	if o.GetName() == "" {
		return write()
	}
	ref, err := c.ref(o)
	if err != nil {
		return err
	}
	desired, err := desiredState(o, subresource)
	if err != nil {
		return err
	}
	end, err := c.brake.Begin(ctx, apply.Attempt{Ref: ref, Subresource: subresource, Desired: desired, Base: base})
	if err != nil {
		return err
	}
	err = write()
	end(o.GetResourceVersion(), err)
	return err
}

func (c limitedClient) ref(o client.Object) (plan.Ref, error) {
	gvk, err := c.GroupVersionKindFor(o)
	if err != nil {
		return plan.Ref{}, err
	}
	return plan.Ref{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName(),
	}, nil
}

const statusPart = "status"

// desiredState returns a hash of the state that a write of an object, or of its status,
// establishes. The state of an object contains no metadata but its owner references and its content
// digest, and not the number of a revision, which grows with each activation. The state of a status
// contains no times.
func desiredState(o client.Object, subresource string) (string, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return "", err
	}
	if subresource == statusPart {
		tree = map[string]any{statusPart: withoutTimes(tree[statusPart])}
	} else {
		delete(tree, statusPart)
		tree["metadata"] = []any{o.GetOwnerReferences(), o.GetAnnotations()[plan.ContentDigestAnnotation]}
		if spec, ok := tree["spec"].(map[string]any); ok {
			if _, isRevision := o.(v1.PackageRevision); isRevision {
				delete(spec, "revision")
			}
		}
	}
	if raw, err = json.Marshal(tree); err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// withoutTimes returns a value without its times, such as the times of conditions, which differ each time that a status
// is restored. The request of a user to try again is a time too, and asks for another status each time.
func withoutTimes(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, e := range v {
			if key != "lastHandledRetry" {
				v[key] = withoutTimes(e)
			}
		}
	case []any:
		for i, e := range v {
			v[i] = withoutTimes(e)
		}
	case string:
		if _, err := time.Parse(time.RFC3339, v); err == nil {
			return nil
		}
	}
	return value
}
