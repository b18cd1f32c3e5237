package registry

import (
	"github.com/xpkg-dev/xpkg/internal/registry/limit"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// storing returns a handler of changes that a registry of olareg stores. olareg changes its own copy of a list of manifests before it writes the file, and
// keeps the change if the write fails, for example on a full disk. Its copy would then have a tag that no client pushed with success and that is lost
// with the process. A new time of the file makes olareg read it again, within a second.
//
// A change is on the disk before its response is sent.
func (l *Layouts) storing(images http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isRead(r) {
			images.ServeHTTP(&readAnswer{ResponseWriter: w, request: r}, r)
			return
		}
		api, ok := parseRequest(r.URL.Path)
		if !ok {
			images.ServeHTTP(w, r)
			return
		}
		a := &storeAnswer{ResponseWriter: w, request: r, api: api, layouts: l}
		if api.endpoint == manifestEndpoint {
			if err := l.saveList(api.repository); err != nil {
				l.logUnwritten(api.repository, err)
				writeNotStored(w, r)
				return
			}
			a.before = l.listed(api.repository)
		}
		images.ServeHTTP(a, r)
	})
}

// reread makes olareg read the list of manifests of a repository again.
func (l *Layouts) reread(repository string) {
	now := time.Now()
	path := filepath.Join(l.dir(repository), layoutFile)
	if err := os.Chtimes(path, now, now); err != nil && !isAbsent(err) {
		l.log.Error("cannot discard a change that was not stored", "repository", repository, "error", err)
	}
}

// storeAnswer replaces the response to a change that cannot be stored: that of olareg is empty.
type storeAnswer struct {
	http.ResponseWriter
	request *http.Request
	api     apiRequest
	layouts *Layouts
	// before has the digests that the repository listed before the change of a manifest.
	before           map[string]bool
	started, replace bool
}

// WriteHeader implements [http.ResponseWriter].
func (a *storeAnswer) WriteHeader(status int) {
	if a.started {
		return
	}
	a.started = status >= http.StatusOK
	if a.started && status < http.StatusMultipleChoices {
		if err := a.layouts.flush(a.api.repository).change(a.api, a.Header(), a.before); err != nil {
			a.layouts.logUnwritten(a.api.repository, err)
			status = http.StatusInternalServerError
			for _, name := range []string{"Location", "Docker-Content-Digest", "OCI-Subject"} {
				a.Header().Del(name)
			}
		}
	}
	if status < http.StatusInternalServerError {
		a.ResponseWriter.WriteHeader(status)
		return
	}
	a.replace = true
	if a.api.endpoint == manifestEndpoint {
		a.layouts.reread(a.api.repository)
	}
	writeNotStored(a.ResponseWriter, a.request)
}

// writeNotStored writes the response to a change that cannot be stored now.
func writeNotStored(w http.ResponseWriter, r *http.Request) {
	limit.Unavailable("the registry cannot store the content now; its log has the cause").Write(w, r)
}

// logUnwritten reports that a change of a repository cannot be written to the disk.
func (l *Layouts) logUnwritten(repository string, err error) {
	l.log.Error("cannot write a change to the disk", "repository", repository, "error", err)
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
