package apply

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

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
	var m partial
	if err := json.Unmarshal(raw, &m); err != nil {
		return o, false, ErrContent.New(err, "read %s %s", ref.Kind, ref.Name)
	}
	o = Object{Live: m.live(ref), JSON: raw}
	for _, f := range m.Metadata.ManagedFields {
		if f.Subresource == "" && f.Manager != plan.FieldManager && f.Fields.content && (o.Writer == "" || f.Time.After(o.WrittenAt)) {
			o.Writer, o.WrittenAt = f.Manager, f.Time
		}
	}
	return o, true, nil
}
