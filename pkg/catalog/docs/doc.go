// Package docs stores the documentation of one version of a package: the schemas of its kinds, readme, release notes, icons
// and examples. Every part is compressed on its own with a shared dictionary, and a table at the start locates it. A
// reader therefore reads one kind without the others, from a file or with HTTP range requests.
//
//	xpkg docs␤            magic
//	version, sizes        unsigned variable-length integers: 1, packed and raw size of the table, packed and raw size of the dictionary
//	table                 zstd frame: a line "name ⇥ packed size ⇥ raw size" for every part, ordered by name
//	dictionary            zstd frame
//	parts                 zstd frames in the order of the table
//
// The names of parts are: package (JSON of [Info]), readme, release-notes, icon (its media type, a line feed and the image),
// crd/GROUP/KIND (the role, a line feed and the JSON of a CustomResourceDefinition) and examples/GROUP/KIND (JSON list of [Example]). Readers
// ignore parts with other names.
//
// The CRDs of packages of the first generation have annotations with titles, overviews, icons and UI schemas; see package
// firstgen.
package docs
