// Package indexer builds, updates, publishes and fetches indexes of registries.
//
//	sources ──Builder.Build──▶ catalog.Catalog ──Publish──▶ registry ──Client.Open──▶ catalog.Reader
//	              ▲                                            │
//	              └─ Builder.Update ◀──────────────────────────┘
//
// A build reads the tags of each repository, and of each version the manifest and the index layer: two requests. A
// package without an index layer costs its base layer, once for each digest. What was read is kept in the package cache
// under the digest, so an interrupted build continues where it ended. The tag of the index moves last.
//
// A package that cannot be read is listed in the index with the reason, and does not affect others.
package indexer
