// Package format reads and checks Crossplane packages.
//
// Two ways meet in one type:
//
//	stream of package.yaml ──Read──────────────▶ Package
//	folder of an author    ──ReadFolder──▶ Folder ──Package──▶ Package
//	                                         └─────Stream───▶ package.yaml
//
// A stream is split into documents without a change to a byte of them. Each
// document is read once into canonical JSON, many at the same time; what kind of
// object it is, is told by that JSON. The one metadata object, whatever its age,
// becomes a Meta. Everything that can be wrong is a Finding with a stable code,
// and a Policy says which findings refuse a package.
//
// The package is pure: bytes and fs.FS in, values out. It knows no registry, no
// cluster, no clock and no operating system.
package format
