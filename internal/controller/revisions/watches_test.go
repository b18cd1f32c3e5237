package revisions

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
		"Dependents":  enqueueWaiting(watchtest.Unreadable{}, v1.ProviderKind),
		"Siblings":    enqueueInactiveSiblings(watchtest.Unreadable{}, v1.ProviderKind),
		"Drift":       enqueueForDrift(watchtest.Unreadable{}, v1.ProviderKind, "CustomResourceDefinition"),
	})
}
