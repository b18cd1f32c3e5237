// Package check finds everything in a package that an API server would reject at install,
// and metadata that is missing or misleading.
//
//	stream ──Stream──┐
//	folder ──Folder──┼──▶ []xpkg.Finding ──▶ SARIF
//	Package──Package─┘
//
// Reading a package (xpkg.Read) checks the documents and the kinds of objects. The checks
// here need the content of the objects. They run in parallel, never stop at the first
// problem, and need no cluster: the CRD validation of the API server is passed as a
// [Validator], so that a program can omit it.
//
// The severity of a finding depends on its code and on the xpkg.Policy: building a package
// is stricter than installing a published one.
package check
