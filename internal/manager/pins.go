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

// pin is a question to a registry: for which package, what it asks for, and what
// image configs made of that.
type pin struct {
	uid              types.UID
	reference, image string
}

func pinOf(p v1.Package, image string) pin { return pin{p.GetUID(), p.PackageSpec().Package, image} }

// get gives the answer, as long as the status does not record it.
func (s *pins) get(key pin, status *v1.PackageStatus) (oci.Digest, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.digest[key]
	if ok && status.CurrentIdentifier == key.reference && status.ResolvedPackage == key.image {
		delete(s.digest, key)
		return oci.Digest{}, false
	}
	return d, ok
}

func (s *pins) put(key pin, d oci.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.digest == nil {
		s.digest = map[pin]oci.Digest{}
	}
	s.digest[key] = d
}

// drop forgets the answers for a package that is gone.
func (s *pins) drop(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.digest {
		if key.uid == uid {
			delete(s.digest, key)
		}
	}
}
