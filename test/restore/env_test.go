package restore_test

import (
	"testing"

	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// The restore and the package manager have user names of their own, by which an admission policy
// distinguishes them from the garbage collector.
const (
	restorer       = "restorer"
	packageManager = "package-manager"
)

// cluster is an environment whose client backs up and restores, with an empty package cache.
type cluster struct {
	*env.Env
	content *env.Content
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	e := env.New(t)
	e.Client = env.NewClient(t, e.As(restorer))
	return &cluster{Env: e, content: env.OpenContent(t, t.TempDir(), fetch.Options{})}
}

// start starts a package manager and returns when it is ready.
func (c *cluster) start(t *testing.T) *env.Manager {
	t.Helper()
	o := c.content.Options()
	o.Config = c.As(packageManager)
	return c.RunManager(t, o)
}

// planner returns a planner with the content of the manager.
func (c *cluster) planner(t *testing.T) *planner.Planner {
	t.Helper()
	live, err := planner.NewCluster(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &planner.Planner{
		Reader: c.Client, Cluster: live, Source: c.content.Source, Namespace: controller.DefaultNamespace,
	}
}

func until(t *testing.T, state string, holds func() (string, bool)) {
	t.Helper()
	wait.Until(t, env.Limit, state, holds)
}
