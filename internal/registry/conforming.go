package registry

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Conforming returns a handler that serves a registry of olareg as the OCI distribution specification and HTTP require: an empty list of
// referrers is a list, a client that accepts all types gets a manifest, a list of no tags is empty, and a canceled upload has no content.
func Conforming(images http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch api, _ := parseRequest(r.URL.Path); api.endpoint {
		case referrersEndpoint:
			answer := &referrersAnswer{ResponseWriter: w}
			images.ServeHTTP(answer, r)
			answer.send()
		case manifestEndpoint:
			images.ServeHTTP(w, withManifestTypes(r))
		case tagsEndpoint:
			serveTags(w, r, images, api.repository)
		case sessionEndpoint:
			if r.Method == http.MethodDelete {
				w = cancelAnswer{w}
			}
			images.ServeHTTP(w, r)
		default:
			images.ServeHTTP(w, r)
		}
	})
}

// cancelAnswer writes the status of a canceled upload, 204, for which olareg writes 202.
type cancelAnswer struct{ http.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (a cancelAnswer) WriteHeader(status int) {
	if status == http.StatusAccepted {
		a.Header().Del("Content-Length")
		status = http.StatusNoContent
	}
	a.ResponseWriter.WriteHeader(status)
}

// serveTags serves a list of tags. olareg would panic if the client asks for no tags or for a negative number of them.
func serveTags(w http.ResponseWriter, r *http.Request, images http.Handler, repository string) {
	if most := r.URL.Query().Get("n"); most != "" && isRead(r) {
		n, err := strconv.Atoi(most)
		if err != nil || n < 0 {
			writeError(w, r, http.StatusBadRequest, codePagination, "n is not a number of tags: "+strconv.Quote(most))
			return
		}
		if n == 0 {
			writeJSON(w, r, http.StatusOK, map[string]any{"name": repository, "tags": []string{}})
			return
		}
	}
	images.ServeHTTP(w, r)
}

// withManifestTypes returns a request that accepts the types of manifests by their names, if it accepts them by a wildcard or accepts all
// types, because registries know no wildcards.
func withManifestTypes(r *http.Request) *http.Request {
	accepted := strings.Join(r.Header.Values("Accept"), ",")
	isWildcard := strings.TrimSpace(accepted) == ""
	for part := range strings.SplitSeq(accepted, ",") {
		name, _, _ := strings.Cut(part, ";")
		name = strings.TrimSpace(name)
		isWildcard = isWildcard || name == "*/*" || name == "application/*"
	}
	if !isWildcard || !isRead(r) {
		return r
	}
	out := r.Clone(r.Context())
	out.Header["Accept"] = slices.Concat(r.Header["Accept"], acceptedManifests())
	return out
}

// referrersAnswer writes the empty list of referrers as the OCI distribution specification does: olareg writes null.
type referrersAnswer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader implements [http.ResponseWriter].
func (a *referrersAnswer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write implements [http.ResponseWriter].
func (a *referrersAnswer) Write(p []byte) (int, error) { return a.body.Write(p) }

// send sends the response.
func (a *referrersAnswer) send() {
	raw := bytes.Replace(a.body.Bytes(), []byte(`"manifests":null`), []byte(`"manifests":[]`), 1)
	if a.Header().Get("Content-Length") != "" {
		a.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	}
	a.ResponseWriter.WriteHeader(cmp.Or(a.status, http.StatusOK))
	_, _ = a.ResponseWriter.Write(raw) // An error means that the client has disconnected.
}

// absentImages returns a handler that serves a registry without content. It has no list of tags, for which olareg writes an empty one.
func absentImages(images http.Handler) http.Handler {
	conforming := Conforming(images)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if api, _ := parseRequest(r.URL.Path); api.endpoint == tagsEndpoint {
			writeError(w, r, http.StatusNotFound, codeNameUnknown, "the repository does not exist")
			return
		}
		conforming.ServeHTTP(w, r)
	})
}
