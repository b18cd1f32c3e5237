package registry

import (
	"net/http"
	"path"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
)

// endpoint is a kind of paths of the OCI distribution API.
type endpoint int

const (
	unknownEndpoint endpoint = iota
	pingEndpoint
	listEndpoint // the list of repositories
	manifestEndpoint
	blobEndpoint
	uploadEndpoint // starts an upload
	sessionEndpoint
	tagsEndpoint
	referrersEndpoint
)

const apiPath = "/v2/"

// apiRequest is a parsed path of the OCI distribution API.
type apiRequest struct {
	endpoint   endpoint
	repository string
	// reference is the tag, digest or upload session at the end of the path.
	reference string
}

// parseRequest parses a path. It returns false for paths that are not in canonical form, such as paths with "..", so that no
// later reader can understand another repository.
func parseRequest(requestPath string) (apiRequest, bool) {
	rest, ok := strings.CutPrefix(requestPath, apiPath)
	if !ok {
		return apiRequest{endpoint: pingEndpoint}, requestPath == strings.TrimSuffix(apiPath, "/")
	}
	rest, slash := strings.CutSuffix(rest, "/")
	if rest == "" {
		return apiRequest{endpoint: pingEndpoint}, !slash
	}
	if path.Clean("/"+rest) != "/"+rest {
		return apiRequest{}, false
	}
	if rest == "_catalog" {
		return apiRequest{endpoint: listEndpoint}, true
	}
	parts := strings.Split(rest, "/")
	n := len(parts)
	if n < 3 {
		return apiRequest{}, false
	}
	r := apiRequest{repository: strings.Join(parts[:n-2], "/"), reference: parts[n-1]}
	switch parts[n-2] {
	case "manifests":
		r.endpoint = manifestEndpoint
	case "blobs":
		r.endpoint = blobEndpoint
		if r.reference == "uploads" {
			r.endpoint, r.reference = uploadEndpoint, ""
		}
	case "referrers":
		r.endpoint = referrersEndpoint
	case "tags":
		r.endpoint = tagsEndpoint
		if r.reference != "list" {
			return apiRequest{}, false
		}
	case "uploads":
		if n < 4 || parts[n-3] != "blobs" {
			return apiRequest{}, false
		}
		r.endpoint, r.repository = sessionEndpoint, strings.Join(parts[:n-3], "/")
	default:
		return apiRequest{}, false
	}
	return r, access.ValidRepository(r.repository) && (!slash || r.endpoint == uploadEndpoint)
}

// path returns the canonical path of a request.
func (r apiRequest) path() string {
	base := apiPath + r.repository
	switch r.endpoint {
	case manifestEndpoint:
		return base + "/manifests/" + r.reference
	case blobEndpoint:
		return base + "/blobs/" + r.reference
	case uploadEndpoint:
		return base + "/blobs/uploads/"
	case sessionEndpoint:
		return base + "/blobs/uploads/" + r.reference
	case tagsEndpoint:
		return base + "/tags/list"
	case referrersEndpoint:
		return base + "/referrers/" + r.reference
	case listEndpoint:
		return apiPath + "_catalog"
	case unknownEndpoint, pingEndpoint:
	}
	return apiPath
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// isDigest reports whether the reference of a manifest is a digest: a tag contains no colon.
func isDigest(reference string) bool { return strings.Contains(reference, ":") }
