// Package remote is the registry client: it resolves tags, fetches packages into a
// [store.Store], and pushes artifacts.
//
// # Requests
//
// A request passes through these steps. Each step handles one kind of failure:
//
//	Client      Resolve, Fetch, Push, Tags: one method for each operation
//	  │
//	session     one for each registry host: transport, tokens, Retry-After
//	  │
//	retries     network errors, 429 and 5xx; bounded by Options.Attempts
//	  │
//	redirects   reads only; credentials are sent to the registry only
//	  │
//	auth        answers one 401 with Basic or Bearer credentials
//	  │
//	breaker     CircuitBreaker: fails at once for a host that does not respond
//	  │
//	dial policy checks the address of the connection itself
//
// The steps are composed in newSession. Retries and breaker are [http.RoundTripper]s without
// a reference to the session.
//
// # Identity
//
// [Client.Resolve] returns the digest of a tag. Resolve once for each decision, then
// use the digest: [Client.Fetch] requires one. Content enters the store only after its
// whole digest was verified. An interrupted download resumes where it stopped.
//
// # Security
//
// The client never falls back from HTTPS to HTTP. It uses plain HTTP only for loopback
// registries and for hosts with [HostOptions].PlainHTTP. It sends credentials only to
// the host that they are configured for, and requests tokens only for its own scope. A host
// that a registry names (a redirect or a token server) must not be in a more private
// network than the registry; otherwise the request fails with [ErrForbiddenAddress].
//
// # Limits
//
// Every response is bounded by [oci.Limits], by [Options].Patience and by [Options].MinRate.
// [RetryAt] returns the time before which a failed request cannot succeed, for callers that
// retry later.
//
// Uploads write the root last, under the tag, so a tag never refers to an incomplete
// package. A [Client] is safe for concurrent use.
package remote
