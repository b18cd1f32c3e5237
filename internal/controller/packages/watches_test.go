package packages

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/handler"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/watch/watchtest"
)

// A handler that cannot read the cache enqueues nothing. The full resync makes up for that.
func TestHandlersEnqueueNothingWhenTheCacheCannotBeRead(t *testing.T) {
	watchtest.EnqueuesNothing(t, map[string]handler.EventHandler{
		"ImageConfig": enqueueForImageConfig(watchtest.Unreadable{}, nil, v1.ProviderKind),
		"Secret":      enqueueForSecret(watchtest.Unreadable{}, nil, v1.ProviderKind),
	})
}
