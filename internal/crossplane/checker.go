package crossplane

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// maxAge is the time for which a version is cached.
const maxAge = time.Minute

// Checker checks packages against the version of Crossplane: the configured one, or the one in
// the cluster.
type Checker struct {
	// Configured is the version to check against; empty means the one in the cluster.
	Configured string
	Reader     client.Reader
	Namespace  string
	Now        func() time.Time

	mu     sync.Mutex
	found  string
	readAt time.Time
}

// Check returns an error for a package that does not support the version of Crossplane. It
// accepts every package if Crossplane does not run.
func (c *Checker) Check(ctx context.Context, meta xpkg.Meta) error {
	if meta.Crossplane == "" {
		return nil
	}
	version, err := c.version(ctx)
	if err != nil || version == "" {
		return err
	}
	return meta.Compatible(version)
}

// Constraints returns a function that reports whether a constraint accepts the version of Crossplane, or nil if
// Crossplane does not run.
func (c *Checker) Constraints(ctx context.Context) (func(constraint string) bool, error) {
	version, err := c.version(ctx)
	if err != nil || version == "" {
		return nil, err
	}
	return func(constraint string) bool { return xpkg.Meta{Crossplane: constraint}.Compatible(version) == nil }, nil
}

// version returns the version to check against; it is empty if Crossplane does not run.
func (c *Checker) version(ctx context.Context) (string, error) {
	if c.Configured != "" {
		return c.Configured, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.readAt.IsZero() && c.Now().Sub(c.readAt) < maxAge {
		return c.found, nil
	}
	found, err := Version(ctx, c.Reader, c.Namespace)
	if err != nil {
		return "", err
	}
	c.found, c.readAt = found, c.Now()
	return c.found, nil
}
