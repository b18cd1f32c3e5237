package manager

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// pins remembers what references were resolved to until the status that records
// it can be read back. The client library answers reads from a cache that lags
// behind writes, and without this a tag would be asked for twice.
type pins struct {
	mu     sync.Mutex
	digest map[pin]oci.Digest
}

type pin struct {
	uid types.UID
	ref string
}

// get gives the digest of a reference whose record cannot be read yet.
func (s *pins) get(p v1.Package) (oci.Digest, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := pin{p.GetUID(), p.PackageSpec().Package}
	d, ok := s.digest[key]
	if ok && p.PackageStatus().CurrentIdentifier == key.ref {
		delete(s.digest, key)
		return oci.Digest{}, false
	}
	return d, ok
}

func (s *pins) put(p v1.Package, d oci.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.digest == nil {
		s.digest = map[pin]oci.Digest{}
	}
	s.digest[pin{p.GetUID(), p.PackageSpec().Package}] = d
}
