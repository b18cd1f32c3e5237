// Package registry is a registry server for packages: the OCI distribution API, an index of the packages, a search, and
// pages. [Server] is the server of `xpkg registry serve`. [Site] is the part that needs only a registry to read from,
// so it also works in front of a registry of another project, and in `xpkg up`.
//
//	            ┌ /token, /api/v1/token   credentials → bearer tokens        (tokenserver, exchange)
//	request ────┼ /v2/…                   access, names, immutable versions  (distribution)
//	            │                           └▶ storage, or the backend       (backend)
//	            └ everything else         pages, search, feeds, API          (Site)
//	                                        ▲
//	push ──▶ queue ──▶ facts of the repository ──▶ catalog ──▶ index of the search, index artifact
//
// # Access
//
// All parts ask [access.Policy.May]. A client that may not read a repository gets the responses for a repository that
// does not exist, from the same code: see readNothing. Packages with different readers are in different partitions,
// each with an index of its own, so neither ranks nor counts of public packages depend on private ones.
//
// # State
//
// The index of the public packages is published in the repository "index", from which clients of `xpkg search` fetch
// it; see publication. Private packages are in no published index.
//
// The packages in the registry are the only state besides the configuration and the tokens. Everything in the folder
// "cache" can be deleted, and is built again.
package registry
