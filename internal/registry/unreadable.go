package registry

import (
	"errors"
	"net/http"
	"os"

	"github.com/xpkg-dev/xpkg/internal/registry/limit"
)

// damageError is the damage of a list that was read completely, or that is missing. Any other error is a fault of the
// system, such as a lack of descriptors, which passes and says nothing about the content.
type damageError struct{ error }

// isDamage reports whether an error is the damage of content.
func isDamage(err error) bool {
	var damage damageError
	return errors.As(err, &damage)
}

// unreadable returns the error for a repository that cannot be read now. It is logged once until the repository can be
// read.
func (l *Layouts) unreadable(repository, file string, cause error) error {
	_, failed := os.Stat(file) // It needs no descriptor.
	l.mu.Lock()
	last := l.checked[repository]
	if !isAbsent(failed) { // Clients can send any number of other names.
		l.checked[repository] = layoutCheck{hasTags: last.hasTags, isUnreadable: true}
	}
	l.mu.Unlock()
	if !last.isUnreadable && !isAbsent(failed) {
		l.log.Error("the repository cannot be read now", "repository", repository, "file", file, "error", cause)
	}
	return ErrServer.New(nil, "the repository %s cannot be read now; the log of the server has the cause", repository)
}

// writeUnreadable writes the response to a read of content that cannot be read now, such as for lack of descriptors:
// only content that was read completely can be damaged.
func writeUnreadable(w http.ResponseWriter, r *http.Request) {
	limit.Unavailable("the registry cannot read the content now; its log has the cause").Write(w, r)
}

// readAnswer replaces the response to a read of content that olareg cannot read: its response is empty.
type readAnswer struct {
	http.ResponseWriter
	request  *http.Request
	replaced bool
}

// WriteHeader implements [http.ResponseWriter].
func (a *readAnswer) WriteHeader(status int) {
	if a.replaced = status == http.StatusInternalServerError; a.replaced {
		writeUnreadable(a.ResponseWriter, a.request)
		return
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *readAnswer) Write(p []byte) (int, error) {
	if a.replaced {
		return len(p), nil
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap returns the writer for [http.ResponseController].
func (a *readAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
