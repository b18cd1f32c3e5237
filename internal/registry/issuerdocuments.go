package registry

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xpkg-dev/xpkg/internal/keyedmutex"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

const (
	// largestDocument is the maximum size of a document of an issuer in bytes.
	largestDocument = 1 << 20
	// documentLife is the time for which a document of an issuer, or the failure to read it, is used again. A token with
	// an unknown key, which any client can send, therefore causes no request of its own; a key that an issuer adds is
	// known after this time.
	documentLife = 10 * time.Second
)

// issuerDocuments reads the documents of OIDC issuers: discovery documents and keys. It limits their size and the time
// for which it waits for them.
type issuerDocuments struct {
	next http.RoundTripper
	now  func() time.Time
	log  *slog.Logger

	reading keyedmutex.Mutex[string]
	mu      sync.Mutex
	// documents are by address.
	documents map[string]issuerDocument
}

// issuerDocument is the response to a request for a document, or the error instead.
type issuerDocument struct {
	read   time.Time
	status int
	header http.Header
	body   []byte
	err    error
}

// unavailableKey is the key of the value of a context that the failure to read a document sets.
type unavailableKey struct{}

// withUnavailable returns a context for the verification of a token, and the value that reports whether a document
// could not be read.
func withUnavailable(ctx context.Context) (context.Context, *atomic.Bool) {
	unavailable := &atomic.Bool{}
	return context.WithValue(ctx, unavailableKey{}, unavailable), unavailable
}

// RoundTrip implements [http.RoundTripper].
func (d *issuerDocuments) RoundTrip(r *http.Request) (*http.Response, error) {
	address := r.URL.String()
	unlock, err := d.reading.Lock(r.Context(), address)
	if err != nil {
		return nil, err
	}
	defer unlock()
	doc, known := d.known(address)
	if !known {
		doc = d.read(r)
		d.keep(address, doc)
	}
	if unavailable, ok := r.Context().Value(unavailableKey{}).(*atomic.Bool); ok &&
		(doc.err != nil || doc.status >= http.StatusBadRequest) {
		unavailable.Store(true)
	}
	if doc.err != nil {
		return nil, doc.err
	}
	return &http.Response{
		Status: http.StatusText(doc.status), StatusCode: doc.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: doc.header.Clone(), Body: io.NopCloser(bytes.NewReader(doc.body)), ContentLength: int64(len(doc.body)),
		Request: r,
	}, nil
}

func (d *issuerDocuments) known(address string) (issuerDocument, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	doc, ok := d.documents[address]
	return doc, ok && d.now().Sub(doc.read) < documentLife
}

// keep stores a document, and removes those that are not used again.
func (d *issuerDocuments) keep(address string, doc issuerDocument) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for other, old := range d.documents {
		if d.now().Sub(old.read) >= documentLife {
			delete(d.documents, other)
		}
	}
	d.documents[address] = doc
}

// read reads a document, also if the client of the server has gone: others wait for it.
func (d *issuerDocuments) read(r *http.Request) issuerDocument {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), issuerTime)
	defer cancel()
	doc := issuerDocument{}
	doc.status, doc.header, doc.body, doc.err = d.send(r.WithContext(ctx))
	doc.read = d.now()
	if doc.err != nil || doc.status >= http.StatusBadRequest {
		d.log.Warn("cannot read a document of an issuer", "address", r.URL.Redacted(), "status", doc.status, "error", doc.err)
	}
	return doc
}

func (d *issuerDocuments) send(r *http.Request) (status int, header http.Header, body []byte, err error) {
	// A discovery document or a redirect names the address.
	if r.URL.Scheme != "https" && !oci.IsLoopback(r.URL.Hostname()) {
		return 0, nil, nil, ErrServer.New(
			nil, "the address is not protected by TLS, so any machine on the way could replace the keys of the issuer",
		)
	}
	resp, err := d.next.RoundTrip(r)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, largestDocument+1))
	if err == nil && len(body) > largestDocument {
		err = ErrServer.New(nil, "the document has more than %d bytes", largestDocument)
	}
	return resp.StatusCode, resp.Header, body, err
}
