package origin

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// ListOnce returns a reader that lists all ImageConfigs only once, for a command that locates many packages. It reads
// all other objects each time.
func ListOnce(r client.Reader) client.Reader { return &listOnce{Reader: r} }

type listOnce struct {
	client.Reader
	mu    sync.Mutex
	known *v1beta1.ImageConfigList
}

// List implements [client.Reader].
func (r *listOnce) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	configs, ok := list.(*v1beta1.ImageConfigList)
	if !ok || len(opts) > 0 {
		return r.Reader.List(ctx, list, opts...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		if err := r.Reader.List(ctx, list); err != nil {
			return err
		}
		r.known = configs.DeepCopy()
	}
	r.known.DeepCopyInto(configs)
	return nil
}
