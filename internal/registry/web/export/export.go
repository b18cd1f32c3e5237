// Package export writes the pages of a site as files, for a web server that only serves files or for a browser without
// a server.
//
// It requests the start page from a handler, and then every page that a page links to. Links become relative, so that
// the files work below any path.
package export

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/registry/web"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
)

// Result counts the written files.
type Result struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// MaxFiles is the maximum number of files.
const MaxFiles = 2_000_000

// ErrExport is the code for a page that cannot be exported.
var ErrExport = errcode.Code{
	Name: "ExportFailed", Class: errcode.Internal,
	Cause: "A page of the packages cannot be made, so the export is incomplete.",
	Fix:   "Correct the named package, or export without it.",
}

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code { return []errcode.Code{ErrExport} }

// Write writes the pages of a handler, which must be static, into a folder. Existing files are replaced. The start page
// is written last, so that a folder without it is an incomplete export. Progress is called after each file with the
// numbers of written and known files; it can be nil.
func Write(ctx context.Context, h *web.Handler, dir *os.Root, progress func(done, total int)) (Result, error) {
	e := exporter{handler: h, dir: dir, progress: progress, files: map[string]string{}}
	e.add("/")
	for len(e.queue) > 0 {
		if err := ctx.Err(); err != nil {
			return e.result, err
		}
		next := e.queue[0]
		e.queue = e.queue[1:]
		if err := e.write(ctx, next); err != nil {
			return e.result, err
		}
	}
	return e.result, e.save(StartPage, e.start)
}

// StartPage is the file with the start page.
const StartPage = "index.html"

type exporter struct {
	handler  http.Handler
	dir      *os.Root
	progress func(done, total int)
	result   Result
	// files are the files by the path of their page; queue are the paths that are not written yet.
	files map[string]string
	queue []string
	// start is the content of the start page.
	start []byte
}

// add schedules a page and returns its file.
func (e *exporter) add(path string) string {
	file, ok := e.files[path]
	if !ok {
		file = fileOf(path)
		e.files[path] = file
		e.queue = append(e.queue, path)
	}
	return file
}

// write requests a page and writes its file.
func (e *exporter) write(ctx context.Context, path string) error {
	if len(e.files) > MaxFiles {
		return ErrExport.New(nil, "the site has more than %d pages", MaxFiles)
	}
	body, mediaType, err := e.get(ctx, path)
	if err != nil {
		return err
	}
	file := e.files[path]
	switch mediaType, _, _ := strings.Cut(mediaType, ";"); mediaType {
	case "text/html", "application/atom+xml", "image/svg+xml":
		body = e.rewrite(body, path, file)
	}
	if file == StartPage {
		e.start = body
		return nil
	}
	return e.save(file, body)
}

// save writes a file.
func (e *exporter) save(file string, body []byte) error {
	if i := strings.LastIndexByte(file, '/'); i > 0 {
		if err := e.dir.MkdirAll(file[:i], 0o755); err != nil {
			return archive.ErrCannotWrite.New(err, "cannot create a folder of the export in %s", e.dir.Name())
		}
	}
	if err := e.dir.WriteFile(file, body, 0o644); err != nil {
		return archive.ErrCannotWrite.New(err, "cannot write a page of the export in %s", e.dir.Name())
	}
	e.result.Files++
	e.result.Bytes += int64(len(body))
	if e.progress != nil {
		e.progress(e.result.Files, len(e.files))
	}
	return nil
}

// get requests a page.
func (e *exporter) get(ctx context.Context, path string) ([]byte, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, "", fmt.Errorf("page %s: %w", path, err)
	}
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	e.handler.ServeHTTP(w, r)
	if w.status != http.StatusOK {
		return nil, "", ErrExport.New(nil, "page %s has the status %d", path, w.status)
	}
	return w.body.Bytes(), w.header.Get("Content-Type"), nil
}

// recorder is a response in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *recorder) Write(b []byte) (int, error) { return w.body.Write(b) }

// fileExtensions are the extensions of pages that are files of their own. All other pages are index.html in a folder.
var fileExtensions = map[string]bool{
	".css": true, ".js": true, ".svg": true, ".json": true, ".atom": true, ".yaml": true, ".txt": true,
}

// fileOf returns the file of a page.
func fileOf(address string) string {
	parts := strings.Split(strings.Trim(address, "/"), "/")
	for i, p := range parts {
		if s, err := url.PathUnescape(p); err == nil {
			p = s
		}
		parts[i] = fileName(p)
	}
	last := parts[len(parts)-1]
	file := strings.Join(parts, "/")
	switch {
	case address == "/":
		return StartPage
	case partOf(parts) == "icon": // icons of files are PNG
		return file + ".png"
	case fileExtensions[path.Ext(last)] && isFile(parts):
		return file
	}
	return file + "/index.html"
}

// partOf returns the part of a package or of a kind that a path names, such as "icon"; "" if it names another page. The
// names of packages, kinds and fields can be those of parts.
func partOf(parts []string) string {
	rest := parts
	switch parts[0] {
	case "p":
		rest = parts[1+slices.IndexFunc(parts, func(p string) bool { return strings.Contains(p, "@") }):]
		if len(rest) > 3 && rest[0] == "k" {
			rest = rest[3:]
		}
	case "k":
		rest = parts[min(len(parts), 3):]
	}
	if len(rest) != 1 {
		return ""
	}
	return rest[0]
}

// isFile reports whether a path with an extension is a file.
func isFile(parts []string) bool {
	switch parts[0] {
	case "static", "schemas":
		return true
	}
	part := partOf(parts)
	return part == "feed.atom" || part == "crd.yaml" || part == "graph.svg"
}

// maxName is the maximum length of a file name in bytes.
const maxName = 200

// fileName returns a file name for a segment of a path that is the same on all systems: other characters than letters,
// digits and a few signs become ~XX.
func fileName(segment string) string {
	var out strings.Builder
	for i := range len(segment) {
		switch b := segment[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', strings.IndexByte("-_@+=,", b) >= 0,
			b == '.' && i > 0 && i < len(segment)-1:
			out.WriteByte(b)
		default:
			fmt.Fprintf(&out, "~%02X", b)
		}
	}
	name := out.String()
	if len(name) > maxName {
		name = shorten(name)
	}
	return name
}
