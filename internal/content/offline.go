package content

import (
	"net/http"

	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// ErrNotCached is the failure of content that may not be pulled and is not in
// the cache.
var ErrNotCached = failure.Register(failure.Code{
	Name: "NotCached", Class: failure.NotFound,
	Cause: "The packagePullPolicy is Never, and the content is not in the package cache.",
	Fix:   "Put the content into the package cache, or use the packagePullPolicy IfNotPresent.",
})

// offline is a network that nothing is sent to.
type offline struct{ ref oci.Reference }

// RoundTrip refuses the request before anything is dialed.
func (o offline) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, ErrNotCached.New(nil, "%s is not in the package cache", o.ref)
}
