package registry

import (
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// storing returns a handler of changes that a registry of olareg stores. olareg changes its own copy of a list of manifests before it writes the file, and
// keeps the change if the write fails, for example on a full disk. Its copy would then have a tag that no client pushed with success and that is lost
// with the process. A new time of the file makes olareg read it again, within a second.
func (l *Layouts) storing(images http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isRead(r) {
			images.ServeHTTP(w, r)
			return
		}
		images.ServeHTTP(&storeAnswer{ResponseWriter: w, request: r, layouts: l}, r)
	})
}

// reread makes olareg read the list of manifests of a repository again.
func (l *Layouts) reread(repository string) {
	now := time.Now()
	path := filepath.Join(l.root, filepath.FromSlash(repository), layoutFile)
	if err := os.Chtimes(path, now, now); err != nil && !isAbsent(err) {
		l.log.Error("cannot discard a change that was not stored", "repository", repository, "error", err)
	}
}

// storeAnswer replaces the response to a change that cannot be stored: that of olareg is empty.
type storeAnswer struct {
	http.ResponseWriter
	request          *http.Request
	layouts          *Layouts
	started, replace bool
}

// WriteHeader implements [http.ResponseWriter].
func (a *storeAnswer) WriteHeader(status int) {
	if a.started {
		return
	}
	a.started = status >= http.StatusOK
	if status < http.StatusInternalServerError {
		a.ResponseWriter.WriteHeader(status)
		return
	}
	a.replace = true
	if api, ok := parseRequest(a.request.URL.Path); ok && api.endpoint == manifestEndpoint {
		a.layouts.reread(api.repository)
	}
	writeError(a.ResponseWriter, a.request, status, codeUnknown, "the registry cannot store the content; its log has the cause")
}

// Write implements [http.ResponseWriter].
func (a *storeAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.replace {
		return len(p), nil
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap returns the writer for [http.ResponseController].
func (a *storeAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
