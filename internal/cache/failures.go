package cache

import "github.com/xpkg-dev/xpkg/internal/failure"

// Failures of the package cache.
var (
	// ErrNotInCache is the failure of a name that nothing in the cache has.
	ErrNotInCache = failure.Register(failure.Code{
		Name: "NotInCache", Class: failure.NotFound,
		Cause: "Nothing in the package cache has the name that spec.package gives with packagePullPolicy Never.",
		Fix:   "Copy NAME.xpkg into the folder of the package cache, or add a package with `xpkg cache add FILE --as NAME`.",
	})
	// ErrCacheName is the failure of a name that content in the cache cannot have.
	ErrCacheName = failure.Register(failure.Code{
		Name: "CacheName", Class: failure.Usage,
		Cause: "The name is neither letters, digits, '.', '_' and '-', nor the full reference of a package.",
		Fix:   "Use a name such as mycoolpkg, or a reference with its registry such as registry.example.com/acme/pkg:v1.0.0.",
	})
	// ErrCacheFull is the failure of a write for which no room can be made.
	ErrCacheFull = failure.Register(failure.Code{
		Name: "CacheFull", Class: failure.Unavailable,
		Cause: "The limit of the package cache leaves no room for a package, and everything in the cache is in use or was added by name.",
		Fix:   "Raise --cache-limit, or see with `xpkg cache ls` what could go and remove it with `xpkg cache prune --all`.",
	})
	// ErrCacheBusy is the failure of a write for which there is no room yet.
	ErrCacheBusy = failure.Register(failure.Code{
		Name: "CacheBusy", Class: failure.Unavailable,
		Cause: "The limit of the package cache leaves no room for a package until others have not been used for ten minutes.",
		Fix:   "Wait: the manager tries again by itself. Raise --cache-limit when this happens often.",
	})
	// ErrDamagedRecord is the failure of what the cache keeps about its content.
	ErrDamagedRecord = failure.Register(failure.Code{
		Name: "DamagedCacheRecord", Class: failure.Untrusted,
		Cause: "A file in which the package cache keeps names, or what a control plane uses, is damaged, so nothing may be removed.",
		Fix:   "Run `xpkg cache verify`, which removes the file, and add what had the name again; the manager writes its own again.",
	})
)
