package protocol

import (
	"net/http"
	"path"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
)

// Endpoint is a kind of paths of the OCI distribution API.
type Endpoint int

// The endpoints. Repositories is the list of the repositories, StartUpload starts an upload, and Upload continues one.
const (
	unknown Endpoint = iota
	Ping
	Repositories
	Manifest
	Blob
	StartUpload
	Upload
	Tags
	Referrers
)

// Root is the beginning of all paths.
const Root = "/v2/"

// Request is a parsed path of the OCI distribution API.
type Request struct {
	Endpoint   Endpoint
	Repository string
	// Reference is the tag, digest or upload session at the end of the path.
	Reference string
}

// Parse parses a path. It returns false for paths that are not in canonical form, such as paths with "..", so that no
// later reader can understand another repository.
func Parse(requestPath string) (Request, bool) {
	rest, ok := strings.CutPrefix(requestPath, Root)
	if !ok {
		return Request{Endpoint: Ping}, requestPath == strings.TrimSuffix(Root, "/")
	}
	rest, slash := strings.CutSuffix(rest, "/")
	if rest == "" {
		return Request{Endpoint: Ping}, !slash
	}
	if path.Clean("/"+rest) != "/"+rest {
		return Request{}, false
	}
	if rest == "_catalog" {
		return Request{Endpoint: Repositories}, true
	}
	parts := strings.Split(rest, "/")
	n := len(parts)
	if n < 3 {
		return Request{}, false
	}
	r := Request{Repository: strings.Join(parts[:n-2], "/"), Reference: parts[n-1]}
	switch parts[n-2] {
	case "manifests":
		r.Endpoint = Manifest
	case "blobs":
		r.Endpoint = Blob
		if r.Reference == "uploads" {
			r.Endpoint, r.Reference = StartUpload, ""
		}
	case "referrers":
		r.Endpoint = Referrers
	case "tags":
		r.Endpoint = Tags
		if r.Reference != "list" {
			return Request{}, false
		}
	case "uploads":
		if n < 4 || parts[n-3] != "blobs" {
			return Request{}, false
		}
		r.Endpoint, r.Repository = Upload, strings.Join(parts[:n-3], "/")
	default:
		return Request{}, false
	}
	return r, access.ValidRepository(r.Repository) && (!slash || r.Endpoint == StartUpload)
}

// Path returns the canonical path of a request.
func (r Request) Path() string {
	base := Root + r.Repository
	switch r.Endpoint {
	case Manifest:
		return base + "/manifests/" + r.Reference
	case Blob:
		return base + "/blobs/" + r.Reference
	case StartUpload:
		return base + "/blobs/uploads/"
	case Upload:
		return base + "/blobs/uploads/" + r.Reference
	case Tags:
		return base + "/tags/list"
	case Referrers:
		return base + "/referrers/" + r.Reference
	case Repositories:
		return Root + "_catalog"
	case unknown, Ping:
	}
	return Root
}

// IsRead reports whether a request changes nothing.
func IsRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }
