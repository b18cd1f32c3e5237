// Package store keeps verified content in a directory, addressed by digest.
//
// # Entries
//
// A [Store] has three kinds of content:
//
//	blob       content under its digest                    can be fetched again
//	derived    a value computed from a blob (DerivedKey)   can be computed again
//	record     a small file of a user of the store         never evicted
//
// [Store.Put] stores a blob only if the reader returns exactly the declared size and
// digest. [Store.Open] and [Store.Get] verify the digest again on each read. A damaged
// entry is moved to a quarantine directory and counts as absent, so the caller fetches
// the content again.
//
// # Writes
//
// A write reserves disk space, fills a temporary file, syncs it, and renames it to its
// final name. An entry is therefore complete or absent after a crash at any point.
// [Store.Sweep] removes the temporary files of processes that were killed.
//
// # Sharing
//
// Several processes can use one directory. A shared lock protects the format of the
// directory; [Store.Exclusive] serializes decisions about eviction and space across
// processes. An open entry is locked, so [Store.Evict] never removes it.
//
// [Open] refuses a directory that is a symbolic link, belongs to another user, is
// writable by others, or has files of another kind.
//
// # Eviction
//
// The store itself has no size limit and no eviction policy. [Options].MakeRoom is
// called before a blob or a derived value is written; it can list [Store.Entries], which include the time of the
// last use, and call [Store.Evict].
package store
