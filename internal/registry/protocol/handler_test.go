package protocol_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/internal/registry/storage"
)

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	base         = "/v2/acme/boats"
)

// client sends requests to a handler.
type client struct {
	t testing.TB
	http.Handler
}

func newClient(t testing.TB) client {
	t.Helper()
	store := storage.Open(t.TempDir(), storage.Options{Volatile: true, Grace: time.Hour})
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return client{t, &protocol.Handler{Store: store}}
}

// do sends a request, with headers and their values in turn.
func (c client) do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	c.t.Helper()
	r := httptest.NewRequestWithContext(c.t.Context(), method, target, strings.NewReader(body))
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w
}

// want fails unless a response has a status. It returns the response.
func (c client) want(status int, w *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	c.t.Helper()
	if w.Code != status {
		c.t.Errorf("status %d, want %d: %s", w.Code, status, w.Body)
	}
	return w
}

func digestOf(content string) string { return string(storage.DigestOf([]byte(content), "")) }

// push pushes a blob in one request.
func (c client) push(content string) string {
	c.t.Helper()
	d := digestOf(content)
	c.want(http.StatusCreated, c.do(http.MethodPost, base+"/blobs/uploads/?digest="+d, content))
	return d
}

// manifest returns a manifest with a name, and with a subject unless that is empty.
func manifest(name, config, subject string) string {
	if subject != "" {
		subject = fmt.Sprintf(`,"subject":{"mediaType":%q,"digest":%q,"size":1}`, manifestType, subject)
	}
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"artifactType":"application/%s","config":{"mediaType":"application/example","digest":%q,"size":2},"layers":[]%s}`,
		manifestType, name, config, subject)
}

// TestUploadInParts uploads a blob in parts, asks for its size, and continues it.
func TestUploadInParts(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	begun := c.want(http.StatusAccepted, c.do(http.MethodPost, base+"/blobs/uploads/", "")).Header().Get("Location")
	second := c.want(http.StatusAccepted, c.do(http.MethodPatch, begun, "abc", "Content-Range", "0-2")).Header().
		Get("Location")
	path, _, _ := strings.Cut(second, "?")
	for name, response := range map[string]*httptest.ResponseRecorder{
		"a part that is sent again":        c.do(http.MethodPatch, begun, "abc"),
		"a part that does not continue it": c.do(http.MethodPatch, path, "def", "Content-Range", "4-6"),
		"a range that is not valid":        c.do(http.MethodPatch, path, "def", "Content-Range", "x-"),
	} {
		if response.Code != http.StatusRequestedRangeNotSatisfiable {
			t.Errorf("%s: %d %s", name, response.Code, response.Body)
		}
	}
	status := c.want(http.StatusNoContent, c.do(http.MethodGet, path, ""))
	if got := status.Header(); got.Get("Range") != "0-2" || got.Get("Location") != second {
		t.Errorf("the size: %v", got)
	}
	c.want(http.StatusBadRequest, c.do(http.MethodPut, second, "def")) // It has no digest.
	if got := c.want(
		http.StatusCreated, c.do(http.MethodPut, second+"&digest="+digestOf("abcdef"), "def", "Content-Range", "3-5"),
	).Header(); got.Get("Location") != base+"/blobs/"+digestOf("abcdef") {
		t.Errorf("%v", got)
	}
	if got := c.want(
		http.StatusOK, c.do(http.MethodGet, base+"/blobs/"+digestOf("abcdef"), ""),
	); got.Body.String() != "abcdef" {
		t.Errorf("the blob is %q", got.Body)
	}
	c.want(http.StatusNotFound, c.do(http.MethodGet, path, ""))
}

// TestUploadThatEnds sends other content than the digest states, and a body that breaks off.
func TestUploadThatEnds(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	start := func() string {
		return c.want(http.StatusAccepted, c.do(http.MethodPost, base+"/blobs/uploads/", "")).Header().Get("Location")
	}
	upload := start()
	c.want(http.StatusBadRequest, c.do(http.MethodPut, upload+"&digest="+digestOf("other"), "content"))
	c.want(http.StatusNotFound, c.do(http.MethodPut, upload+"&digest="+digestOf("content"), "content"))
	upload = start()
	path, _, _ := strings.Cut(upload, "?")
	r := httptest.NewRequestWithContext(
		t.Context(), http.MethodPatch, path, io.MultiReader(strings.NewReader("abc"), brokenReader{}),
	)
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	c.want(http.StatusBadRequest, w)
	rest := c.want(http.StatusNoContent, c.do(http.MethodGet, path, "")).Header().Get("Location")
	c.want(http.StatusCreated, c.do(http.MethodPut, rest+"&digest="+digestOf("abcdef"), "def"))
	c.want(http.StatusNoContent, c.do(http.MethodDelete, start(), ""))
	sha512 := string(storage.DigestOf([]byte("long"), "sha512:"))
	c.want(http.StatusCreated, c.do(http.MethodPut, start()+"&digest="+sha512, "long"))
	c.want(http.StatusOK, c.do(http.MethodHead, base+"/blobs/"+sha512, ""))
}

type brokenReader struct{}

// Read implements [io.Reader].
func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestMount copies a blob of another repository, and starts an upload if there is none.
func TestMount(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	d := c.push("content")
	mount := "/v2/acme/rafts/blobs/uploads/?from=acme/boats&mount="
	c.want(http.StatusCreated, c.do(http.MethodPost, mount+d, ""))
	if got := c.want(http.StatusOK, c.do(http.MethodGet, "/v2/acme/rafts/blobs/"+d, "")); got.Body.String() != "content" {
		t.Errorf("the blob is %q", got.Body)
	}
	for _, target := range []string{mount + digestOf("absent"), mount +
		"x", strings.Replace(mount, "acme/boats", "acme/absent", 1) + digestOf("absent")} {
		got := c.want(http.StatusAccepted, c.do(http.MethodPost, target, ""))
		c.want(http.StatusNoContent, c.do(http.MethodDelete, got.Header().Get("Location"), ""))
	}
}

// TestReads reads content with HEAD, and parts of it.
func TestReads(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	config := c.push("{}")
	m := manifest("image", config, "")
	put := c.want(http.StatusCreated, c.do(http.MethodPut, base+"/manifests/v1", m, "Content-Type", manifestType))
	if got := put.Header(); got.Get("Location") != base+"/manifests/"+digestOf(m) ||
		got.Get("Docker-Content-Digest") != digestOf(m) {
		t.Errorf("the push: %v", got)
	}
	for _, reference := range []string{"/manifests/v1", "/manifests/" + digestOf(m)} {
		got := c.want(http.StatusOK, c.do(http.MethodHead, base+reference, "", "Accept", "application/other"))
		if got.Header().Get("Content-Type") != manifestType || got.Header().Get("Docker-Content-Digest") != digestOf(m) ||
			got.Header().Get("Content-Length") != fmt.Sprint(len(m)) || got.Body.Len() > 0 {
			t.Errorf("HEAD %s: %v %s", reference, got.Header(), got.Body)
		}
	}
	if got := c.want(
		http.StatusPartialContent, c.do(http.MethodGet, base+"/blobs/"+config, "", "Range", "bytes=1-"),
	); got.Body.String() != "}" {
		t.Errorf("a part: %s", got.Body)
	}
	c.want(http.StatusRequestedRangeNotSatisfiable, c.do(http.MethodGet, base+"/blobs/"+config, "", "Range", "bytes=5-"))
}

// TestForeignLayers pushes a manifest with a layer that registries may not distribute, and that is missing.
func TestForeignLayers(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	layer := `"layers":[{"mediaType":"application/vnd.oci.image.layer.nondistributable.v1.tar","digest":"` +
		digestOf("absent") + `","size":1}]`
	m := strings.Replace(manifest("image", c.push("{}"), ""), `"layers":[]`, layer, 1)
	c.want(http.StatusCreated, c.do(http.MethodPut, base+"/manifests/v1", m))
	c.want(
		http.StatusBadRequest, c.do(http.MethodPut, base+"/manifests/v1", strings.Replace(m, ".nondistributable", "", 1)),
	)
}

// TestRefusals sends requests that are refused, with their codes.
func TestRefusals(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	config := c.push("{}")
	c.want(http.StatusCreated, c.do(http.MethodPut, base+"/manifests/v1", manifest("image", config, "")))
	absent := digestOf("absent")
	for name, tc := range map[string]struct {
		method, target, body string
		status               int
		code                 string
	}{
		"no repository": {
			http.MethodGet, "/v2/acme/absent/tags/list", "", http.StatusNotFound, protocol.CodeNameUnknown,
		},
		"no tag": {http.MethodGet, base +
			"/manifests/v2", "", http.StatusNotFound, protocol.CodeManifestUnknown},
		"no manifest": {http.MethodGet, base + "/manifests/" +
			absent, "", http.StatusNotFound, protocol.CodeManifestUnknown},
		"a blob is no manifest": {http.MethodGet, base + "/manifests/" +
			config, "", http.StatusNotFound, protocol.CodeManifestUnknown},
		"no blob": {http.MethodGet, base + "/blobs/" +
			absent, "", http.StatusNotFound, protocol.CodeBlobUnknown},
		"no digest": {http.MethodGet, base +
			"/blobs/sha256:x", "", http.StatusBadRequest, protocol.CodeDigestInvalid},
		"no digest of a subject": {http.MethodGet, base +
			"/referrers/x", "", http.StatusBadRequest, protocol.CodeDigestInvalid},
		"no upload": {http.MethodPatch, base +
			"/blobs/uploads/x", "", http.StatusNotFound, protocol.CodeUploadUnknown},
		"a name of a file": {http.MethodPost, base +
			"/blobs/blobs/uploads/", "", http.StatusBadRequest, protocol.CodeNameInvalid},
		"a path": {
			http.MethodGet, "/v2/acme/../boats/tags/list", "", http.StatusNotFound, protocol.CodeNameInvalid,
		},
		"a method": {http.MethodPost, base +
			"/tags/list", "", http.StatusMethodNotAllowed, protocol.CodeUnsupported},
		"no JSON": {http.MethodPut, base +
			"/manifests/v2", "{", http.StatusBadRequest, protocol.CodeManifestInvalid},
		"no configuration": {http.MethodPut, base + "/manifests/v2", `{"mediaType":"` + manifestType +
			`"}`, http.StatusBadRequest, protocol.CodeManifestInvalid},
		"no media type": {http.MethodPut, base +
			"/manifests/v2", "{}", http.StatusBadRequest, protocol.CodeManifestInvalid},
		"a missing blob": {http.MethodPut, base +
			"/manifests/v2", manifest("image", absent, ""), http.StatusBadRequest, protocol.CodeContentMissing},
		"another digest": {http.MethodPut, base + "/manifests/" +
			absent, manifest("image", config, ""), http.StatusBadRequest, protocol.CodeDigestInvalid},
		"a tag": {http.MethodPut, base +
			"/manifests/-v2", manifest("image", config, ""), http.StatusBadRequest, protocol.CodeManifestInvalid},
		"a large manifest": {
			http.MethodPut, base + "/manifests/v2", strings.Repeat(" ", protocol.LargestManifest+1),
			http.StatusRequestEntityTooLarge, protocol.CodeManifestInvalid,
		},
		"a deletion of no tag": {http.MethodDelete, base +
			"/manifests/v2", "", http.StatusNotFound, protocol.CodeManifestUnknown},
		"a deletion of no manifest": {http.MethodDelete, base + "/manifests/" +
			absent, "", http.StatusNotFound, protocol.CodeManifestUnknown},
		"a deletion of no blob": {http.MethodDelete, base + "/blobs/" +
			absent, "", http.StatusNotFound, protocol.CodeBlobUnknown},
	} {
		got := c.do(tc.method, tc.target, tc.body)
		if got.Code != tc.status || !strings.Contains(got.Body.String(), `"code":"`+tc.code+`"`) {
			t.Errorf("%s: %d %s, want %d %s", name, got.Code, got.Body, tc.status, tc.code)
		}
	}
}

// TestPagesOfTags reads the tags in pages, and deletes some.
func TestPagesOfTags(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	m := manifest("image", c.push("{}"), "")
	for _, tag := range []string{"b", "d", "a", "c"} {
		c.want(http.StatusCreated, c.do(http.MethodPut, base+"/manifests/"+tag, m))
	}
	var pages []string
	for next := base + "/tags/list?n=3"; next != ""; {
		got := c.want(http.StatusOK, c.do(http.MethodGet, next, ""))
		var list struct{ Tags []string }
		if err := json.Unmarshal(got.Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		pages = append(pages, strings.Join(list.Tags, ""))
		next, _, _ = strings.Cut(strings.TrimPrefix(got.Header().Get("Link"), "<"), ">")
	}
	if !slices.Equal(pages, []string{"abc", "d"}) {
		t.Errorf("the pages are %q", pages)
	}
	c.want(http.StatusAccepted, c.do(http.MethodDelete, base+"/manifests/a", ""))
	c.want(http.StatusOK, c.do(http.MethodGet, base+"/manifests/"+digestOf(m), ""))
	c.want(http.StatusAccepted, c.do(http.MethodDelete, base+"/manifests/"+digestOf(m), ""))
	if got := c.want(
		http.StatusOK, c.do(http.MethodGet, base+"/tags/list", ""),
	); !strings.Contains(got.Body.String(), `"tags":[]`) {
		t.Errorf("after the deletion: %s", got.Body)
	}
}

// TestReferrers lists the manifests that refer to one, all and those of one artifact type.
func TestReferrers(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	config := c.push("{}")
	subject := digestOf("subject") // It need not exist.
	for _, name := range []string{"signature", "status"} {
		m := manifest(name, config, subject)
		if got := c.want(http.StatusCreated, c.do(http.MethodPut, base+"/manifests/"+digestOf(m), m)).Header().
			Get("OCI-Subject"); got != subject {
			t.Errorf("the subject of %s is %q", name, got)
		}
		c.want(http.StatusOK, c.do(http.MethodHead, base+"/manifests/"+digestOf(m), ""))
	}
	check := func(target, filters string, want ...string) {
		t.Helper()
		got := c.want(http.StatusOK, c.do(http.MethodGet, target, ""))
		var list struct {
			MediaType string
			Manifests []storage.Descriptor
		}
		if err := json.Unmarshal(got.Body.Bytes(), &list); err != nil || list.Manifests == nil {
			t.Fatal(err, got.Body)
		}
		var types []string
		for _, m := range list.Manifests {
			types = append(types, strings.TrimPrefix(m.ArtifactType, "application/"))
		}
		if !slices.Equal(types, want) || got.Header().Get("OCI-Filters-Applied") != filters ||
			got.Header().Get("Content-Type") != list.MediaType {
			t.Errorf("%s: %q %v, want %q", target, types, got.Header(), want)
		}
	}
	check(base+"/referrers/"+subject, "", "signature", "status")
	check(base+"/referrers/"+subject+"?artifactType=application/status", "artifactType", "status")
	check(base+"/referrers/"+digestOf("other"), "")
	check("/v2/acme/absent/referrers/"+subject, "")
	c.want(
		http.StatusAccepted, c.do(http.MethodDelete, base+"/manifests/"+digestOf(manifest("signature", config, subject)), ""),
	)
	check(base+"/referrers/"+subject, "", "status")
}
