// Package packagecache contains the commands of the package cache: xpkg cache.
package packagecache

// CacheCmd are the commands about the package cache.
type CacheCmd struct {
	Ls     cacheLsCmd     `cmd:"" aliases:"list" help:"List the packages in the package cache."`
	Add    cacheAddCmd    `cmd:"" help:"Put a package into the package cache, for the packagePullPolicy Never."`
	Verify cacheVerifyCmd `cmd:"" help:"Compare everything in the package cache with its digest."`
	Prune  cachePruneCmd  `cmd:"" help:"Remove packages from the package cache that nobody needs."`
}
