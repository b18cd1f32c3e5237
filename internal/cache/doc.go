// Package cache implements the package cache: a folder that keeps downloaded packages,
// and into which users can put packages of their own (packages guide, "The Package
// Cache").
//
//	DIR/store/        managed content: blobs by digest, names, uses
//	DIR/NAME.xpkg     sideloaded files, also NAME.xpkg.gz and NAME.tar
//	DIR/NAME/         a sideloaded OCI layout
//
// DIR may be a volume that other users can write to. The store inside of it belongs to
// this user alone. Sideloaded files are read without following links out of DIR,
// verified, and copied into the store before use.
//
// # Eviction
//
// The store has a limit in bytes. If a write does not fit, the least recently used
// packages are evicted, whole packages at a time: first the data derived from a package,
// then its layers, and last its manifest. A package is kept while
//
//   - a control plane uses it, as recorded with [Cache.Use] for all processes;
//   - it has a name from [Cache.Add];
//   - it is open, or was used within the last ten minutes: a process that has just fetched
//     it is still going to use it.
//
// If the packages that are kept leave no room, nothing is evicted and nothing is written.
//
// Several processes can share a cache. If a process is killed, the cache can still be
// opened and verified.
package cache
