package operation

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// writer writes packages on behalf of a user. It marks the packages that it creates and updates, or removes the marks of other commands.
type writer struct {
	client.Client
	mark string
}

// newWriter returns a writer, which marks packages if the command may undo its changes.
func newWriter(cluster client.Client, mayUndo bool) writer {
	w := writer{Client: cluster}
	if mayUndo {
		w.mark = rand.Text()
	}
	return w
}

func (w writer) create(ctx context.Context, p v1.Package) error {
	return w.write(ctx, p, func(ctx context.Context) error { return w.Create(ctx, p, client.FieldOwner(plan.FieldManager)) })
}

// update updates a package that was not written since it was read.
func (w writer) update(ctx context.Context, p v1.Package) error {
	return w.write(ctx, p, func(ctx context.Context) error { return w.Update(ctx, p, client.FieldOwner(plan.FieldManager)) })
}

// delete deletes a package that was not written since it was read. Objects are deleted after the package: with foreground deletion, the
// runtime would lose its permissions before its custom resources are deleted.
func (w writer) delete(ctx context.Context, p v1.Package) error {
	uid, version := p.GetUID(), p.GetResourceVersion()
	err := w.Delete(ctx, p, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return client.IgnoreNotFound(err)
}

const (
	// readTime bounds the time for the read of a package after a failed write.
	readTime = 5 * time.Second
	// endTime is the time in which a write ends after the user has interrupted the command.
	endTime = 5 * time.Second
)

// write marks a package and writes it. A failed write succeeds if the package has the mark: the connection ended before the response, or the
// request was sent again. An interrupt does not end a write that may have arrived, so that the command knows whether it has to undo it.
func (w writer) write(ctx context.Context, p v1.Package, write func(context.Context) error) error {
	revision.SetUndo(p, w.mark)
	kind := p.GetObjectKind().GroupVersionKind()
	defer func() { p.GetObjectKind().SetGroupVersionKind(kind) }()
	if w.mark == "" || ctx.Err() != nil {
		return write(ctx)
	}
	complete, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(endTime, end) })()
	err := write(complete)
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
	defer cancel()
	live := v1.NewPackage(p.PackageKind())
	if w.Get(ctx, client.ObjectKeyFromObject(p), live) != nil || markOf(live) != w.mark {
		return err
	}
	reflect.ValueOf(p).Elem().Set(reflect.ValueOf(live).Elem())
	return nil
}

// patchMetadata changes the metadata of a package with the merge patch that change returns for the package as it is; an empty patch
// changes nothing. If the package is written meanwhile, it is read, and change is called again. Afterwards p is the package as it was written.
func patchMetadata(ctx context.Context, cluster client.Client, p v1.Package, change func() (map[string]any, error)) error {
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
		return apiserver.Classify(err, "change %s", inventory.ShortName(p))
	})
}
