package registry

import (
	"bytes"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// contents verifies the content of the repositories below a folder before it is served: olareg serves the files as they are. Damaged content is
// missing for clients, so that they push it again.
type contents struct {
	root string
	log  *slog.Logger

	mu      sync.Mutex
	checked map[contentKey]contentCheck
}

// contentKey identifies a file with content.
type contentKey struct {
	repository string
	digest     oci.Digest
}

// contentCheck is the result of a check of a file.
type contentCheck struct {
	file      fileState
	isDamaged bool
}

func newContents(root string, log *slog.Logger) *contents {
	return &contents{root: root, log: log, checked: map[contentKey]contentCheck{}}
}

// handler returns a handler that serves the content of a registry of olareg if it is not damaged. A push replaces damaged content.
func (c *contents) handler(images http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api, _ := parseRequest(r.URL.Path)
		switch {
		case api.endpoint == blobEndpoint && isRead(r):
			if d, err := oci.ParseDigest(api.reference); err == nil && c.refuse(w, r, api.repository, d, codeBlobUnknown) {
				return
			}
		case api.endpoint == manifestEndpoint && isRead(r):
			answer := &verifiedAnswer{ResponseWriter: w, request: r, contents: c, repository: api.repository}
			images.ServeHTTP(answer, withoutRange(r))
			answer.send()
			return
		case api.endpoint == manifestEndpoint && r.Method == http.MethodPut:
			r = c.withoutDamagedManifest(r, api.repository)
		case api.endpoint == uploadEndpoint:
			query := r.URL.Query()
			for _, digest := range []string{query.Get("digest"), query.Get("mount")} {
				if d, err := oci.ParseDigest(digest); err == nil {
					c.removeDamaged(api.repository, d)
				}
			}
		}
		images.ServeHTTP(w, r)
	})
}

// path returns the file with the content of a digest.
func (c *contents) path(repository string, d oci.Digest) string {
	return filepath.Join(c.root, filepath.FromSlash(repository), blobsFolder, "sha256", d.Hex())
}

// refuse responds to a read of content that is damaged, or that cannot be read now, and reports whether it did.
func (c *contents) refuse(w http.ResponseWriter, r *http.Request, repository string, d oci.Digest, code string) bool {
	isDamaged, err := c.isDamaged(repository, d)
	switch {
	case err != nil:
		c.log.Error("cannot read content", "repository", repository, "digest", d, "error", err)
		writeUnreadable(w, r)
	case isDamaged:
		writeError(w, r, http.StatusNotFound, code, "the content is damaged")
	}
	return err != nil || isDamaged
}

// isDamaged reports whether a file was read completely and has other content than its digest states. It fails if the file cannot be read now. A file
// is read again when it has changed. Each damage is logged once.
func (c *contents) isDamaged(repository string, d oci.Digest) (bool, error) {
	path, key := c.path(repository, d), contentKey{repository, d}
	f, err := os.Open(path)
	switch {
	case isAbsent(err):
		return false, nil // olareg responds that the content is missing.
	case err != nil:
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	file := stateOf(info)
	c.mu.Lock()
	last, known := c.checked[key]
	c.mu.Unlock()
	if known && last.file == file {
		return last.isDamaged, nil
	}
	found, _, err := oci.DigestReader(f)
	if err != nil {
		return false, err
	}
	isDamaged := found != d
	if isDamaged {
		c.log.Error("content is damaged and not served; push it again, or restore the file from a backup", "repository", repository, "digest", d, "file", path)
	}
	c.mu.Lock()
	c.checked[key] = contentCheck{file, isDamaged}
	c.mu.Unlock()
	return isDamaged, nil
}

// damaged returns the number of files of visible repositories that were found damaged and are not repaired.
func (c *contents) damaged(visible func(repository string) bool) int {
	return countDamaged(&c.mu, c.checked, func(last contentCheck) bool { return last.isDamaged }, func(key contentKey) bool {
		if !visible(key.repository) {
			return false
		}
		isDamaged, err := c.isDamaged(key.repository, key.digest)
		return isDamaged || err != nil // It was damaged when it was last read.
	})
}

// removeDamaged removes the file of a digest that a client pushes if it is damaged: olareg would keep it.
func (c *contents) removeDamaged(repository string, d oci.Digest) {
	if isDamaged, err := c.isDamaged(repository, d); err != nil || !isDamaged {
		return
	}
	if err := os.Remove(c.path(repository, d)); err != nil {
		c.log.Error("cannot remove damaged content", "repository", repository, "digest", d, "error", err)
		return
	}
	c.log.Info("a push replaces damaged content", "repository", repository, "digest", d)
}

// withoutDamagedManifest removes the file of a manifest that a client pushes if it is damaged. It returns the request with its body.
func (c *contents) withoutDamagedManifest(r *http.Request, repository string) *http.Request {
	if r.Body == nil {
		return r
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, largestManifest))
	if err == nil {
		c.removeDamaged(repository, oci.DigestOf(body))
	}
	out := r.Clone(r.Context())
	out.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	return out
}

// verifiedAnswer replaces the response with a damaged manifest by that for a missing one. It sends the content when olareg has responded: until then, olareg neither
// collects the garbage of the repository nor serves other requests to it once the collection waits, however slowly the client reads.
type verifiedAnswer struct {
	http.ResponseWriter
	request    *http.Request
	contents   *contents
	repository string
	isStarted  bool
	// replaced means that the response of olareg is not sent. Content has the file that is sent instead, if any.
	replaced bool
	content  *os.File
}

// WriteHeader implements [http.ResponseWriter].
func (a *verifiedAnswer) WriteHeader(status int) {
	if a.isStarted {
		return
	}
	a.isStarted = true
	d, err := oci.ParseDigest(a.Header().Get("Docker-Content-Digest"))
	if status >= http.StatusMultipleChoices || err != nil {
		a.ResponseWriter.WriteHeader(status)
		return
	}
	header := maps.Clone(a.Header())
	clear(a.Header())
	if a.replaced = a.contents.refuse(a.ResponseWriter, a.request, a.repository, d, codeManifestUnknown); a.replaced {
		return
	}
	a.replaced = true
	if a.content, err = os.Open(a.contents.path(a.repository, d)); err != nil {
		writeUnreadable(a.ResponseWriter, a.request)
		return
	}
	maps.Copy(a.Header(), header)
}

// Write implements [http.ResponseWriter].
func (a *verifiedAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.replaced {
		return len(p), nil
	}
	return a.ResponseWriter.Write(p)
}

// send sends the content, or its part that the client asks for, as olareg does.
func (a *verifiedAnswer) send() {
	if a.content == nil {
		return
	}
	defer a.content.Close()
	a.Header().Del("Content-Length")
	http.ServeContent(a.ResponseWriter, a.request, "", time.Time{}, a.content)
}

// withoutRange returns a request for the whole content.
func withoutRange(r *http.Request) *http.Request {
	if r.Header.Get("Range") == "" {
		return r
	}
	out := r.Clone(r.Context())
	out.Header.Del("Range")
	return out
}

// Unwrap returns the writer for [http.ResponseController].
func (a *verifiedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
