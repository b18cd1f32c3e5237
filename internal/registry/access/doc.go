// Package access decides whether a subject may read or change a repository of a registry server. The registry
// API, the pages, the search, suggestions, counts and feeds all use [Policy.May]. The package does no I/O.
//
// A [Policy] is the configuration of the server. A [Subject] is the sender of a request: an anonymous client, the
// user of a token, or an identity of an OIDC issuer. Content that a subject may not read must be
// indistinguishable from content that does not exist; the server is responsible for that.
package access
