package manager

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	core "github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/format"
)

// crossplane knows which version of Crossplane packages are to fit: the one that
// was configured, or else the one that runs in the cluster.
type crossplane struct {
	configured string
	reader     client.Reader
	namespace  string
	now        func() time.Time

	mu      sync.Mutex
	found   string
	foundAt time.Time
}

// coreAge is for how long a version that was found is believed.
const coreAge = time.Minute

// admits refuses a package that is not made for the version of Crossplane. Where
// there is none every package fits.
func (c *crossplane) admits(ctx context.Context, meta format.Meta) error {
	if meta.Crossplane == "" {
		return nil
	}
	version, err := c.version(ctx)
	if err != nil || version == "" {
		return err
	}
	return meta.Compatible(version)
}

// version is empty where no Crossplane runs.
func (c *crossplane) version(ctx context.Context) (string, error) {
	if c.configured != "" {
		return c.configured, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.foundAt.IsZero() && c.now().Sub(c.foundAt) < coreAge {
		return c.found, nil
	}
	found, err := core.Version(ctx, c.reader, c.namespace)
	if err != nil {
		return "", err
	}
	c.found, c.foundAt = found, c.now()
	return c.found, nil
}
