package apply

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Object is a live object with its content.
type Object struct {
	plan.Live
	// JSON is the complete object.
	JSON []byte
	// Writer is the field manager other than plan.FieldManager that wrote the content last, and WrittenAt the
	// time of that write. They are empty if the managed fields contain none.
	Writer    string
	WrittenAt time.Time
}

// Object reads an object with its content. Use it for the few objects whose content is compared, and Metadata
// for the objects of packages.
func (c *Cluster) Object(ctx context.Context, ref plan.Ref) (o Object, exists bool, err error) {
	path, err := collection(ref)
	if err != nil {
		return o, false, err
	}
	raw, err := c.get(ctx, runtime.ContentTypeJSON, nil, path, ref.Name)
	if apierrors.IsNotFound(err) && !notServed(err) {
		return o, false, nil
	}
	if err != nil {
		return o, false, classify(err, "read %s %s", ref.Kind, ref.Name)
	}
	o, err = decode(ref, raw)
	return o, err == nil, err
}

// Labelled returns the objects of a kind that have a label, in one call. Use it like Object for few objects. Their JSON
// has no apiVersion and no kind, because the API server omits both in a list.
func (c *Cluster) Labelled(
	ctx context.Context, kind schema.GroupVersionKind, label string,
) (map[plan.Ref]Object, error) {
	ref := plan.Ref{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}
	path, err := collection(ref)
	if err != nil {
		return nil, err
	}
	raw, err := c.get(ctx, runtime.ContentTypeJSON, map[string]string{"labelSelector": label}, path)
	if err != nil {
		return nil, classify(err, "list %s with the label %s", ref.Kind, label)
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, ErrContent.New(err, "list %s with the label %s", ref.Kind, label)
	}
	out := make(map[plan.Ref]Object, len(list.Items))
	for _, item := range list.Items {
		o, err := decode(ref, item)
		if err != nil {
			return nil, err
		}
		out[o.Ref] = o
	}
	return out, nil
}

// decode returns the object of a response. It takes the name and the namespace from the object.
func decode(ref plan.Ref, raw []byte) (Object, error) {
	var m partial
	if err := json.Unmarshal(raw, &m); err != nil {
		return Object{}, ErrContent.New(err, "read %s %s", ref.Kind, ref.Name)
	}
	ref.Name, ref.Namespace = m.Metadata.Name, m.Metadata.Namespace
	o := Object{Live: m.live(ref), JSON: raw}
	for _, f := range m.Metadata.ManagedFields {
		if f.Subresource == "" && f.Manager != plan.FieldManager && f.Fields.content &&
			(o.Writer == "" || f.Time.After(o.WrittenAt)) {
			o.Writer, o.WrittenAt = f.Manager, f.Time
		}
	}
	return o, nil
}
