// Package packagecache contains the commands of the package cache: xpkg cache.
package packagecache

// CacheCmd implements `xpkg cache`.
type CacheCmd struct {
	Ls     cacheLsCmd     `cmd:"" aliases:"list" help:"List the packages in the package cache."`
	Add    cacheAddCmd    `cmd:"" help:"Add a package to the package cache, for the packagePullPolicy Never."`
	Verify cacheVerifyCmd `cmd:"" help:"Verify the digests of the package cache."`
	Prune  cachePruneCmd  `cmd:"" help:"Remove unused packages from the package cache."`
}
