// Package xpkg reads Crossplane packages.
//
// A package is read from one of two sources:
//
//	stream of package.yaml ──Read──────────────▶ Package
//	folder of an author    ──ReadFolder──▶ Folder ──Package──▶ Package
//	                                         └─────Stream───▶ package.yaml
//
// A stream is split into documents without changing a byte. Each document is converted
// once, in parallel, to canonical JSON, from which its kind is determined. The metadata
// object, in any version, becomes a Meta. Every problem is a Finding with a stable code,
// and a Policy determines which findings are errors. Inspect returns as much of a refused
// package as possible.
//
// Package check finds what an API server would reject, package index stores the content of
// packages, and package crd converts CRDs of former versions.
//
// The package is pure: it maps bytes and fs.FS to values. It uses no registry, cluster,
// clock or operating system.
package xpkg
