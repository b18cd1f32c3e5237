// Package web serves the pages of a package index: search, packages, kinds, diffs of versions, dependency graphs, API
// groups, feeds and the same as JSON.
//
//	Source ── View of one request ──▶ page ──▶ html/template ──▶ HTML
//	                                   └─────────────────────▶ JSON, Atom
//
// A [Source] returns a [View] for each request, which contains only packages that the client may read. The pages have
// no other access to packages, so a package that a client may not read cannot be distinguished from one that does not
// exist.
//
// The pages work without JavaScript, load nothing from other hosts, and have a strict content security policy. Content
// of packages passes package untrusted, and invisible characters of all pages are replaced by their code points.
//
// Paths:
//
//	/                              the start page
//	/search?q=                     search for packages and kinds
//	/p/REPOSITORY[@TAG]            a package, at its newest version or another one
//	/p/REPOSITORY@TAG/kinds        its kinds; also versions, graph, trust, icon
//	/p/REPOSITORY@TAG/k/GROUP/KIND a kind in that version of the package
//	/k/GROUP/KIND[/VERSION]        a kind, in the newest version of its first provider
//	…/KIND/VERSION/fields/a/b      a part of the fields of a kind
//	…/KIND/crd.yaml, …/KIND/icon   the definition of a kind, and its icon
//	/g/GROUP                       an API group
//	/diff/REPOSITORY/A..B          the differences of two versions
//	/schemas/GROUP/KIND_VERSION.json   the JSON schema of a kind, for editors
//	/feed.atom, /p/REPOSITORY@/feed.atom   feeds of new versions
//	/api/v1/…                      the same as JSON
//
// The path of a package without a tag can equal the path of another page, such as that of the graph of a package with
// the repository one level above. The package takes precedence; paths with a tag are unique.
package web
