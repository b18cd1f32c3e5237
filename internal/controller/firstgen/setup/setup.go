// Package setup adds the API of the first generation to a manager.
package setup

import (
	"cmp"

	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/keyedmutex"
	"github.com/xpkg-dev/xpkg/internal/permission"
)

// Extension returns the API with its controllers.
func Extension(o firstgen.Options) controller.Extension {
	return controller.Extension{
		Enabled: o.Enabled, API: firstgen.Frontend(), SetUp: func(core controller.Core) error { return setUp(o, core) },
	}
}

// setUp registers the controllers.
func setUp(o firstgen.Options, core controller.Core) error {
	base := firstgen.Base{
		API: core.API, Kinds: core.API.Cluster, Packages: core.Packages, Options: o, Namespace: core.Options.Namespace,
		Sources: core.Options.KindSources, Crossplane: core.Crossplane, Choosing: &keyedmutex.Mutex[string]{},
	}
	p := &firstgen.Packages{
		Base: base, NewRuntime: core.NewRuntime, SettleTime: core.Options.Settle, Changes: core.Changes,
	}
	if core.Options.Permissions != nil {
		p.Held = &permission.ManagerRules{Client: core.API.Client, Log: core.Options.Log}
	}
	return cmp.Or(
		(&firstgen.ClusterInstalls{Base: base}).SetupWithManager(core.Manager, core.Options.Log),
		(&firstgen.NamespaceInstalls{Base: base}).SetupWithManager(core.Manager, core.Options.Log),
		p.SetupWithManager(core.Manager, core.Options.Log),
	)
}
