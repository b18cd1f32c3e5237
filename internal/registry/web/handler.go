package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/xpkg-dev/xpkg/internal/registry/web/untrusted"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Policy is the content security policy of all pages. Scripts may connect to the server itself, for suggestions.
const Policy = "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Options configure a Handler.
type Options struct {
	// Name is the name of the site in titles. Default "Packages".
	Name string
	// Registry is the host under which clients pull packages whose repositories have none; usually empty.
	Registry string
	// Login is the path on which browsers log in; empty means none.
	Login string
	// Static makes pages for a web server that only serves files: the page of the search lists everything.
	Static bool
	// Log receives errors of the source; nil discards them.
	Log *slog.Logger
}

// A Handler serves the pages of a source. It must be at the root of a host.
type Handler struct {
	source    Source
	options   Options
	templates map[string]*template.Template
	assets    map[string]asset
	markdown  *untrusted.Renderer
	notes     *untrusted.Renderer
	examples  exampleCache
}

// New returns a handler. The error is a fault of the templates.
func New(source Source, options Options) (*Handler, error) {
	if options.Name == "" {
		options.Name = "Packages"
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	h := &Handler{
		source: source, options: options, markdown: untrusted.NewRenderer("readme-"), notes: untrusted.NewRenderer("notes-"),
	}
	if err := h.loadAssets(); err != nil {
		return nil, err
	}
	return h, h.parseTemplates()
}

// A request is one request with the view of its client.
type request struct {
	*http.Request
	ctx  context.Context
	view View
	// path are the segments of the path.
	path []string
	// static reports that the pages are files; see Options.
	static bool
}

// A response is a complete response. Pages are rendered completely before the first byte is sent, so that a failure
// never leaves a part of a page.
type response struct {
	status    int
	mediaType string
	body      []byte
	// reflects reports that the body contains text of the request. It is not compressed, because the size of the
	// compressed body would reveal which of its other text equals that text.
	reflects bool
	// fixed reports that the body never changes under its path.
	fixed bool
	// policy replaces Policy.
	policy   string
	location string
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		h.write(w, r, h.plainError(http.StatusMethodNotAllowed, "Method not allowed"))
		return
	}
	parts, ok := splitPath(r.URL.EscapedPath())
	if !ok || len(r.URL.RawQuery) > maxQuery {
		h.write(w, r, h.plainError(http.StatusBadRequest, "Malformed address"))
		return
	}
	if parts[0] == "static" {
		h.write(w, r, h.asset(parts))
		return
	}
	req := &request{Request: r, ctx: r.Context(), view: h.source.View(r), path: parts, static: h.options.Static}
	resp, err := h.route(req)
	if err != nil {
		resp = h.failure(req, err)
	}
	h.write(w, r, resp)
}

// maxQuery is the maximum length of the query of an address.
const maxQuery = 2000

// route returns the response for a path.
func (h *Handler) route(r *request) (*response, error) {
	switch r.path[0] {
	case "":
		return h.home(r)
	case "search":
		return h.search(r)
	case "p":
		return h.packagePart(r)
	case "k":
		return h.kind(r)
	case "g":
		return h.group(r)
	case "diff":
		return h.diff(r)
	case "schemas":
		return h.schema(r)
	case "feed.atom":
		return h.feed(r)
	case "api":
		return h.api(r)
	case "robots.txt":
		return &response{
			mediaType: "text/plain; charset=utf-8",
			body:      []byte("User-agent: *\nDisallow: /search\nDisallow: /api/\nDisallow: /diff/\n"),
		}, nil
	}
	return nil, ErrNotFound
}

// failure returns the page for an error. A missing object and one that the client may not read have the same page.
func (h *Handler) failure(r *request, err error) *response {
	view := failureView{
		Status: http.StatusNotFound, Heading: "Not found",
		Text: "There is no such page. It may never have existed, or you may have to log in to see it.",
	}
	var known *errcode.Error
	switch {
	case errors.Is(err, ErrNotFound):
		view.Login = h.options.Login
	case errors.Is(err, context.DeadlineExceeded):
		view = failureView{Status: http.StatusServiceUnavailable, Heading: "This took too long", Text: "Try again later."}
	case errors.As(err, &known):
		view = failureView{
			Status: http.StatusUnprocessableEntity, Heading: "This cannot be shown", Text: known.Error(), Code: known.Code.Name,
		}
	case errors.Is(err, context.Canceled):
		view = failureView{Status: 499, Heading: "Canceled"}
	default:
		h.options.Log.Error("page failed", "path", r.URL.Path, "error", err)
		view = failureView{
			Status: http.StatusInternalServerError, Heading: "Something failed",
			Text: "The server could not make this page. Try again; its log has the reason.",
		}
	}
	if r.path[0] == "api" {
		return jsonResponse(view.Status, map[string]string{
			"code": view.Code, "message": strings.TrimSuffix(view.Heading+": "+view.Text, ": "),
		})
	}
	resp, err := h.page(r, "failure", page{Title: view.Heading, Body: view})
	if err != nil {
		return h.plainError(http.StatusInternalServerError, view.Heading)
	}
	resp.status = view.Status
	return resp
}

type failureView struct {
	Status              int
	Heading, Text, Code string
	// Login is the path on which the client can log in, if that may help.
	Login string
}

func (h *Handler) plainError(status int, text string) *response {
	return &response{status: status, mediaType: "text/plain; charset=utf-8", body: []byte(text + "\n")}
}

func redirect(to string) *response {
	return &response{status: http.StatusFound, mediaType: "text/plain; charset=utf-8", location: to}
}

// write sends a response with the headers that every response has.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, resp *response) {
	header := w.Header()
	policy := resp.policy
	if policy == "" {
		policy = Policy
	}
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Content-Type", resp.mediaType)
	header.Set("Cache-Control", "private, no-cache")
	if resp.fixed {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	header.Add("Vary", "Accept-Encoding")
	if resp.location != "" {
		header.Set("Location", resp.location)
	}
	body, status := resp.body, resp.status
	if status == 0 {
		status = http.StatusOK
	}
	if status == http.StatusOK {
		sum := sha256.Sum256(body)
		tag := `"` + hex.EncodeToString(sum[:16]) + `"`
		header.Set("ETag", tag)
		if strings.Contains(r.Header.Get("If-None-Match"), tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if compresses(r, resp) {
		header.Set("Content-Encoding", "gzip")
		body = compressed(body)
	}
	header.Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client is gone
	}
}

func compresses(r *http.Request, resp *response) bool {
	const least = 1000
	return !resp.reflects && len(resp.body) > least && resp.mediaType != "image/png" &&
		strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
}

func compressed(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body) // a buffer accepts everything
	_ = w.Close()
	return out.Bytes()
}
