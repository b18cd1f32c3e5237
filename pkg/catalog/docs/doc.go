// Package docs reads the documentation of one version of a package from the package itself: the schemas of its kinds,
// readme and icon.
//
// The CRDs of packages of the first generation have annotations with titles, overviews, icons and UI schemas; see
// package firstgen.
package docs
