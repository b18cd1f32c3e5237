package protocol

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/registry/storage"
)

// offsetParameter is the parameter of the address of an upload that has its size: a part that a client sends again is
// refused.
const offsetParameter = "offset"

// startUpload mounts a blob, stores one that is in the request, or starts an upload.
func (h *Handler) startUpload(w http.ResponseWriter, r *http.Request, api Request) error {
	query := r.URL.Query()
	if mount, err := storage.ParseDigest(query.Get("mount")); err == nil && query.Get("from") != "" {
		isMounted, err := h.Store.Mount(r.Context(), api.Repository, query.Get("from"), mount)
		if err != nil {
			return err
		}
		if isMounted {
			writeCreated(w, mount, Request{Endpoint: Blob, Repository: api.Repository, Reference: string(mount)})
			return nil
		}
	}
	u, err := h.Store.StartUpload(api.Repository)
	if err != nil {
		return err
	}
	if !query.Has("digest") {
		writeUpload(w, api, u.ID(), 0, http.StatusAccepted)
		return nil
	}
	if err := h.commit(w, r, api, u); err != nil {
		_ = u.Cancel(r.Context()) // It can have ended.
		return err
	}
	return nil
}

// writeUpload writes the response with the address and the size of an upload.
func writeUpload(w http.ResponseWriter, api Request, id string, size int64, status int) {
	location := url.URL{
		Path:     Request{Endpoint: Upload, Repository: api.Repository, Reference: id}.Path(),
		RawQuery: url.Values{offsetParameter: {strconv.FormatInt(size, 10)}}.Encode(),
	}
	w.Header().Set("Location", location.String())
	w.Header().Set("Range", fmt.Sprintf("0-%d", max(size-1, 0)))
	w.WriteHeader(status)
}

// upload serves the size of an upload.
func (h *Handler) upload(w http.ResponseWriter, _ *http.Request, api Request) error {
	u, err := h.Store.Upload(api.Repository, api.Reference)
	if err != nil {
		return err
	}
	writeUpload(w, api, u.ID(), u.Size(), http.StatusNoContent)
	return nil
}

func (h *Handler) appendUpload(w http.ResponseWriter, r *http.Request, api Request) error {
	u, err := h.Store.Upload(api.Repository, api.Reference)
	if err != nil {
		return err
	}
	offset, err := offsetOf(r)
	if err != nil {
		return err
	}
	size, err := u.Append(body{r}, offset)
	if err != nil {
		w.Header().Set("Range", fmt.Sprintf("0-%d", max(size-1, 0)))
		return err
	}
	writeUpload(w, api, u.ID(), size, http.StatusAccepted)
	return nil
}

func (h *Handler) commitUpload(w http.ResponseWriter, r *http.Request, api Request) error {
	u, err := h.Store.Upload(api.Repository, api.Reference)
	if err != nil {
		return err
	}
	return h.commit(w, r, api, u)
}

// commit stores the blob of an upload, whose last part is in the request.
func (h *Handler) commit(w http.ResponseWriter, r *http.Request, api Request, u *storage.Upload) error {
	d, err := storage.ParseDigest(r.URL.Query().Get("digest"))
	if err != nil {
		return err
	}
	offset, err := offsetOf(r)
	if err != nil {
		return err
	}
	if err := u.Commit(r.Context(), body{r}, offset, d); err != nil {
		return err
	}
	writeCreated(w, d, Request{Endpoint: Blob, Repository: api.Repository, Reference: string(d)})
	return nil
}

func (h *Handler) cancelUpload(w http.ResponseWriter, r *http.Request, api Request) error {
	u, err := h.Store.Upload(api.Repository, api.Reference)
	if err != nil {
		return err
	}
	if err := u.Cancel(r.Context()); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// offsetOf returns the offset of a part: the beginning of its range, or the size in the address of the upload; -1 if
// the request has none.
func offsetOf(r *http.Request) (int64, error) {
	text := r.URL.Query().Get(offsetParameter)
	if parts := r.Header.Get("Content-Range"); parts != "" {
		text, _, _ = strings.Cut(parts, "-")
	}
	if text == "" {
		return -1, nil
	}
	offset, err := strconv.ParseInt(text, 10, 64)
	if err != nil || offset < 0 {
		return 0, fmt.Errorf("%w: %.50q is no offset", storage.ErrOffset, text)
	}
	return offset, nil
}

// body is the body of a request, whose errors are no faults of this system.
type body struct{ *http.Request }

// Read implements [io.Reader].
func (b body) Read(p []byte) (int, error) {
	n, err := b.Body.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // As package io requires it.
		err = fmt.Errorf("%w: %w", errBody, err)
	}
	return n, err
}
