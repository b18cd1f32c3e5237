// Package cache is the package cache: a folder where packages are kept, so that
// they are fetched once, and where people put packages of their own (packages
// guide, "The Package Cache").
//
//	DIR/store/        what xpkg keeps: content under its digest, names, uses
//	DIR/NAME.xpkg     what people put there: also NAME.xpkg.gz and NAME.tar, and
//	DIR/NAME/         the folder of an OCI layout
//
// DIR may be a volume that everybody writes to. The store inside of it belongs to
// this user alone, and what others put beside it is read without following links
// out of DIR, verified, and copied into the store before anybody uses it.
//
// # What stays
//
// The store has a limit in bytes. When there is no room for what is to be written,
// what was not used for longest goes first, whole packages at a time: what was
// derived of a package, then its layers, its manifest last. A package stays when
//
//   - a control plane uses it, which [Cache.Use] says, for all processes and until it
//     is said otherwise;
//   - somebody gave it a name with [Cache.Add];
//   - it is open, or was used within the last ten minutes: whoever has just fetched
//     it is still going to use it.
//
// When what stays leaves no room, nothing is removed and nothing is written.
//
// Several processes can share a cache, and a process that ends at any moment leaves
// a cache that can be opened and verified.
package cache
