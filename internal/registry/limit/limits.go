// Package limit bounds what clients can hold of a registry server: connections, requests, upload sessions, memory, the
// time of searches, and disk space. It wraps the handler and the listener of a server, and knows nothing of its
// storage.
//
// Each limit has three levels: one client may hold a quarter, all anonymous clients together half, and all clients
// together the limit itself. A client is a user; without valid credentials, it is an address (IPv6: a network with 64
// bits).
package limit

import "runtime"

// Limits are the numbers of things that all clients together may hold.
type Limits struct {
	// Connections is the number of open connections. It exceeds Requests, so that a connection without a request can
	// make room for a new one.
	Connections int
	// Requests is the number of requests in progress. Each of them can have a file open.
	Requests int
	// Manifests is the number of pushes of manifests in progress, each of which has its manifest in memory.
	Manifests int
	// Work is the number of requests in progress that read much for a short response: searches, pages, lists and
	// metrics.
	Work int
	// Uploads is the number of unfinished uploads. Each of them can have a file open between its requests.
	Uploads int
	// Repositories is the number of repositories without a tag to which uploads were started in the last hour.
	Repositories int
}

// The shares of a limit.
const (
	clientShare    = 4
	anonymousShare = 2
)

// OfClient returns the part of a limit that one client may hold.
func OfClient(most int) int { return max(1, most/clientShare) }

// OfAnonymous returns the part of a limit that all clients without valid credentials may hold together.
func OfAnonymous(most int) int { return max(1, most/anonymousShare) }

// For returns the limits for a process that may open a number of files and use a number of bytes of memory and
// processors.
func For(files, memory uint64, processors int) Limits {
	clamp := func(n uint64, least, most int) int { return max(least, int(min(n, uint64(most)))) } //nolint:gosec // It is below an int.
	const requestMemory, manifestMemory = 2 << 20, 64 << 20
	return Limits{
		Connections:  clamp(files/4, 32, 4096),
		Requests:     clamp(min(files/8, memory/requestMemory), 16, 1024),
		Manifests:    clamp(min(files/16, memory/manifestMemory), 8, 64),
		Work:         max(8, min(4*processors, 32)),
		Uploads:      clamp(files/8, 16, 512),
		Repositories: 512,
	}
}

// OfProcess returns the limits for this process.
func OfProcess() Limits { return For(mostFiles(), mostMemory(), runtime.GOMAXPROCS(0)) }
