// Package index stores the content of a package, so that it can be reused without parsing its
// YAML.
//
//	package.yaml ──xpkg.Read──▶ Package ──New, Encode──▶ index   (a few KiB)
//	                               └────────Blob───────▶ objects (canonical JSON)
//
//	index, objects ──Decode, Index.Package──▶ Package
//
// Both are derived data: they are stored under the digest of the package and [Version],
// and are rebuilt if they are damaged. The index contains the hash of each object, which is
// verified each time the object is read. An index that came with a package is a claim;
// [Index.Matches] verifies it.
package index
