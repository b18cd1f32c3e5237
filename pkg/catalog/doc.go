// Package catalog is the index of a registry as a value: the packages, the kinds of their newest versions, and the
// history of every package.
//
//	packages ──FactsOf──▶ Facts ──Build──▶ Catalog ──Encode──▶ Layers  (one OCI manifest)
//	                                          ▲                  │
//	                              Fold ◀── Events ◀──────────────┘ journal
//
// Build is a function of facts: their order does not matter, and two builders with the same facts produce the same
// bytes. [Diff] returns the events from one catalog to another, and [Fold] applies events to a catalog: Fold(a, Diff(a,
// b)) equals b.
//
// [Catalog.Lookup] and [Catalog.Search] find kinds and packages in a catalog in memory. A [Reader] does the same over
// the compressed layers, of which an exact lookup decompresses only what it needs.
//
// The rows of an index are claims for finding packages. Installation resolves and verifies a package as without an
// index.
package catalog
