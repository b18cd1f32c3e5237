// Package archive reads and writes packages as files: .xpkg files, other image
// archives, and OCI layouts.
//
// # Reading
//
// [Open] detects the format from the content:
//
//	.xpkg or tar with index.json  ─▶ OCI layout in a tar, read as it is
//	tar with manifest.json        ─▶ docker save; the manifest is built from it
//	directory with index.json     ─▶ OCI layout
//
// [OpenIn] does the same inside an [os.Root], for directories in which other users
// can create files: it follows no link out of the directory and reads regular files
// only. [Read] reads an archive from a stream, such as standard input. An [Archive]
// implements [oci.Artifact] and must be closed.
//
// # Writing
//
// [Write] writes a tar that is both an OCI layout, which keeps every byte and so the
// digest, and a docker save archive for older tools. [ToFile] and [ToLayout] return
// an [oci.Destination] for a file and for a directory. ToFile replaces a regular file
// atomically, after every digest has been verified. Equal artifacts have equal
// archives.
package archive
