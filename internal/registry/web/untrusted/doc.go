// Package untrusted turns content of packages into safe parts of a page: Markdown, links, icons, YAML and plain text.
//
// Everything in a package is written by its author, who may be hostile. A part of a page has no script, loads nothing
// from another host, cannot leave its place on the page, and cannot look like other text by means of invisible
// characters. The size and the nesting of all input are limited before it is parsed.
package untrusted
