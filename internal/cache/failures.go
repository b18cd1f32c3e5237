package cache

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Codes for the package cache.
var (
	// ErrNotInCache is the code for a name that is not in the cache.
	ErrNotInCache = errcode.Code{
		Name: "NotInCache", Class: errcode.NotFound,
		Cause: "With packagePullPolicy Never, spec.package must be the name of a package in the package cache, and there is none with this name.",
		Fix:   "Copy a file with this name and the extension .xpkg into the folder of the package cache, or add the file with `xpkg cache add` and this name as --as.",
	}
	// ErrCacheName is the code for an invalid name.
	ErrCacheName = errcode.Code{
		Name: "CacheName", Class: errcode.Usage,
		Cause: "The name is neither letters, digits, '.', '_' and '-', nor the full reference of a package.",
		Fix:   "Use a name such as mycoolpkg, or a reference with its registry such as registry.example.com/acme/pkg:v1.0.0.",
	}
	// ErrCacheFull is the code for a write that cannot fit.
	ErrCacheFull = errcode.Code{
		Name: "CacheFull", Class: errcode.Unavailable,
		Cause: "The package does not fit into the package cache, because all packages in it are in use or named.",
		Fix:   "Raise --cache-limit, or list the packages with `xpkg cache ls` and remove unused ones with `xpkg cache prune --all`.",
	}
	// ErrCacheBusy is the code for a write that does not fit yet.
	ErrCacheBusy = errcode.Code{
		Name: "CacheBusy", Class: errcode.Unavailable,
		Cause: "The package does not fit into the package cache until other packages have been unused for ten minutes.",
		Fix:   "No action needed: the manager retries. Raise --cache-limit if this happens often.",
	}
	// ErrDamagedRecord is the code for a damaged record of the cache.
	ErrDamagedRecord = errcode.Code{
		Name: "DamagedCacheRecord", Class: errcode.Untrusted,
		Cause: "A record of names or uses in the package cache is damaged, so no package can be removed safely.",
		Fix:   "Run `xpkg cache verify`, which removes the record, and add the named package again; the manager restores its own records.",
	}
)
