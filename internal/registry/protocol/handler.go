package protocol

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/limit"
	"github.com/xpkg-dev/xpkg/internal/registry/storage"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// LargestManifest is the maximum size of a manifest in bytes, as other registries have it.
const LargestManifest = 4 << 20

// Handler serves the content of a store.
type Handler struct {
	Store *storage.Store
	// StateHeader is the header of a list of tags that has the state of the repository; none if it is empty.
	StateHeader string
	// Log gets the faults of the system; nil means none.
	Log *slog.Logger
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Docker-Distribution-API-Version", "registry/2.0")
	api, ok := Parse(r.URL.Path)
	if !ok {
		WriteError(w, r, http.StatusNotFound, CodeNameInvalid, "the path does not name a repository")
		return
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	serve := endpoints[api.Endpoint][method]
	if serve == nil {
		WriteError(w, r, http.StatusMethodNotAllowed, CodeUnsupported, "the method is not allowed")
		return
	}
	if err := serve(h, w, r, api); err != nil {
		h.fail(w, r, err)
	}
}

// endpoints are the functions for the methods of the endpoints. A HEAD is a GET without a body.
var endpoints = map[Endpoint]map[string]func(*Handler, http.ResponseWriter, *http.Request, Request) error{
	Ping: {http.MethodGet: (*Handler).ping},
	Manifest: {
		http.MethodGet: (*Handler).manifest, http.MethodPut: (*Handler).putManifest,
		http.MethodDelete: (*Handler).deleteManifest,
	},
	Blob:        {http.MethodGet: (*Handler).blob, http.MethodDelete: (*Handler).deleteBlob},
	StartUpload: {http.MethodPost: (*Handler).startUpload},
	Upload: {
		http.MethodGet: (*Handler).upload, http.MethodPatch: (*Handler).appendUpload, http.MethodPut: (*Handler).commitUpload,
		http.MethodDelete: (*Handler).cancelUpload,
	},
	Tags:      {http.MethodGet: (*Handler).tags},
	Referrers: {http.MethodGet: (*Handler).referrers},
}

// refusals are the responses to errors of requests.
var refusals = []struct {
	err    error
	status int
	code   string
}{
	{storage.ErrNameInvalid, http.StatusBadRequest, CodeNameInvalid},
	{storage.ErrDigestInvalid, http.StatusBadRequest, CodeDigestInvalid},
	{storage.ErrManifestInvalid, http.StatusBadRequest, CodeManifestInvalid},
	{storage.ErrContentMissing, http.StatusBadRequest, CodeContentMissing},
	{storage.ErrOffset, http.StatusRequestedRangeNotSatisfiable, CodeUploadInvalid},
	{storage.ErrPart, http.StatusMethodNotAllowed, CodeUnsupported},
	{storage.ErrRepositoryUnknown, http.StatusNotFound, CodeNameUnknown},
	{storage.ErrManifestUnknown, http.StatusNotFound, CodeManifestUnknown},
	{storage.ErrBlobUnknown, http.StatusNotFound, CodeBlobUnknown},
	{storage.ErrUploadUnknown, http.StatusNotFound, CodeUploadUnknown},
	{storage.ErrDamaged, http.StatusInternalServerError, CodeDamaged}, // A repetition does not help.
	{errPagination, http.StatusBadRequest, CodePagination},
	{errBody, http.StatusBadRequest, CodeUploadInvalid},
	{errTooLarge, http.StatusRequestEntityTooLarge, CodeManifestInvalid},
}

var (
	errPagination = errors.New("n is not a number of tags")
	errBody       = errors.New("cannot read the body of the request")
	errTooLarge   = fmt.Errorf("the manifest has more than %d bytes", LargestManifest)
)

// fail writes the response for an error. The message of one that is no fault of the system names what the client has
// sent only.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	for _, refusal := range refusals {
		if errors.Is(err, refusal.err) {
			WriteError(w, r, refusal.status, refusal.code, err.Error())
			return
		}
	}
	if h.Log != nil && r.Context().Err() == nil {
		h.Log.Error("the registry cannot respond", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	if IsRead(r) {
		limit.Unavailable("the registry cannot read the content now; its log has the cause").Write(w, r)
		return
	}
	limit.Unavailable("the registry cannot store the content now; its log has the cause").Write(w, r)
}

func (h *Handler) ping(w http.ResponseWriter, r *http.Request, _ Request) error {
	WriteJSON(w, r, http.StatusOK, struct{}{})
	return nil
}

// digestHeader has the digest of a manifest or a blob.
const digestHeader = "Docker-Content-Digest"

// serve serves content, or its part that the client asks for, and closes it.
func serve(w http.ResponseWriter, r *http.Request, content *storage.Content) error {
	w.Header().Set("Content-Type", content.MediaType)
	w.Header().Set(digestHeader, string(content.Digest))
	http.ServeContent(w, r, "", time.Time{}, content.File)
	return content.Close()
}

// manifest serves a manifest with its own media type, whatever the client accepts.
func (h *Handler) manifest(w http.ResponseWriter, r *http.Request, api Request) error {
	content, err := h.Store.Manifest(api.Repository, api.Reference)
	if err != nil {
		return err
	}
	return serve(w, r, content)
}

func (h *Handler) putManifest(w http.ResponseWriter, r *http.Request, api Request) error {
	content, err := io.ReadAll(io.LimitReader(r.Body, LargestManifest+1))
	if err != nil {
		return fmt.Errorf("%w: %w", errBody, err)
	}
	if len(content) > LargestManifest {
		return errTooLarge
	}
	tag, d := api.Reference, storage.DigestOf(content, "")
	if !storage.IsTag(tag) {
		if d, err = storage.ParseDigest(api.Reference); err != nil {
			return err
		}
		tag = ""
	} else if !oci.ValidTag(tag) {
		return fmt.Errorf("%w: the tag %q", storage.ErrManifestInvalid, tag)
	}
	mediaType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	subject, err := h.Store.PutManifest(r.Context(), api.Repository, tag, d, strings.TrimSpace(mediaType), content)
	if err != nil {
		return err
	}
	if subject != "" {
		w.Header().Set("OCI-Subject", string(subject))
	}
	writeCreated(w, d, Request{Endpoint: Manifest, Repository: api.Repository, Reference: string(d)})
	return nil
}

// writeCreated writes the response to the push of content.
func writeCreated(w http.ResponseWriter, d storage.Digest, location Request) {
	w.Header().Set("Location", location.Path())
	w.Header().Set(digestHeader, string(d))
	w.WriteHeader(http.StatusCreated)
}

func (h *Handler) deleteManifest(w http.ResponseWriter, r *http.Request, api Request) (err error) {
	if storage.IsTag(api.Reference) {
		err = h.Store.DeleteTag(r.Context(), api.Repository, api.Reference)
	} else {
		var d storage.Digest
		if d, err = storage.ParseDigest(api.Reference); err == nil {
			err = h.Store.DeleteManifest(r.Context(), api.Repository, d)
		}
	}
	if err == nil {
		w.WriteHeader(http.StatusAccepted)
	}
	return err
}

func (h *Handler) blob(w http.ResponseWriter, r *http.Request, api Request) error {
	d, err := storage.ParseDigest(api.Reference)
	if err != nil {
		return err
	}
	content, err := h.Store.Blob(api.Repository, d)
	if err != nil {
		return err
	}
	return serve(w, r, content)
}

func (h *Handler) deleteBlob(w http.ResponseWriter, r *http.Request, api Request) error {
	d, err := storage.ParseDigest(api.Reference)
	if err != nil {
		return err
	}
	if err := h.Store.DeleteBlob(r.Context(), api.Repository, d); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// tags serves a list of tags in lexical order: n of them, after the tag last.
func (h *Handler) tags(w http.ResponseWriter, r *http.Request, api Request) error {
	query := r.URL.Query()
	most := -1
	if n := query.Get("n"); n != "" {
		var err error
		if most, err = strconv.Atoi(n); err != nil || most < 0 {
			return fmt.Errorf("%w: %q", errPagination, n)
		}
	}
	tags, file, err := h.Store.Tags(api.Repository)
	if err != nil {
		return err
	}
	if h.StateHeader != "" {
		w.Header().Set(h.StateHeader, string(file))
	}
	last := query.Get("last")
	found := make([]string, 0, len(tags))
	for tag := range tags {
		if tag > last {
			found = append(found, tag)
		}
	}
	slices.Sort(found)
	if most >= 0 && len(found) > most {
		if found = found[:most]; most > 0 {
			setNext(w, r, found[most-1])
		}
	}
	WriteJSON(w, r, http.StatusOK, map[string]any{"name": api.Repository, "tags": found})
	return nil
}

// setNext sets the address of the next page of a list, which begins after an entry.
func setNext(w http.ResponseWriter, r *http.Request, last string) {
	query := r.URL.Query()
	query.Set("last", last)
	next := url.URL{Path: r.URL.Path, RawQuery: query.Encode()}
	w.Header().Set("Link", "<"+next.String()+`>; rel="next"`)
}
