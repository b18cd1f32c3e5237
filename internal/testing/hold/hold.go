// Package hold makes clients hold the resources of a registry server, for tests of its limits.
package hold

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// patience is the time in which a server must respond.
const patience = 30 * time.Second

// Client is a client of a registry server.
type Client struct {
	// Address is the address of the server without a scheme.
	Address string
	// Token is the token of the client; empty for an anonymous one.
	Token string
	// Prefix is the prefix of the repositories that the client can write.
	Prefix string
	// Pull is the path of a large blob that the client can read.
	Pull string
}

// Holder makes a client hold a resource.
type Holder struct {
	Name string
	// Hold takes the resource once, until release is called. The server may refuse.
	Hold func(t testing.TB, c Client, i int) (release func())
}

// Holders are the resources of a registry server that a client can hold.
var Holders = []Holder{
	{"idle connection", open("")},
	{"connection after a request", func(t testing.TB, c Client, _ int) func() {
		conn := c.dial(t)
		c.answer(conn, request(c, http.MethodGet, "/v2/", "", 0))
		return func() { _ = conn.Close() }
	}},
	{"slow header", open("GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")},
	{"slow body of an exchange", part(http.MethodPost, func(Client, int) string { return "/api/v1/token" })},
	{"slow body that is refused", func(t testing.TB, c Client, i int) func() {
		c.Token = ""
		return part(http.MethodPost, func(c Client, i int) string { return c.uploads(i) })(t, c, i)
	}},
	{"slow manifest", part(
		http.MethodPut, func(c Client, i int) string { return fmt.Sprintf("/v2/%s/a%d/manifests/v1.0.0", c.Prefix, i) },
	)},
	{"unknown upload", part(http.MethodPatch, func(c Client, i int) string { return c.uploads(i) + rand.Text() })},
	{"upload", func(t testing.TB, c Client, i int) func() { return c.upload(t, i, false) }},
	{"slow upload", func(t testing.TB, c Client, i int) func() { return c.upload(t, i, true) }},
	{"slow download", unread(func(c Client, _ int) string { return c.Pull })},
	{"unread search", unread(func(_ Client, i int) string { return fmt.Sprintf("/search?q=a%d", i) })},
	{"unread page", unread(func(Client, int) string { return "/" })},
	{"unread list", unread(func(Client, int) string { return "/v2/_catalog" })},
	{"unread token", unread(func(Client, int) string { return "/token" })},
	{"unread check", unread(func(Client, int) string { return "/healthz" })},
}

func (c Client) uploads(i int) string { return fmt.Sprintf("/v2/%s/a%d/blobs/uploads/", c.Prefix, i) }

// dial connects to the server. A connection that the server has closed again is one, too.
func (c Client) dial(t testing.TB) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(t.Context(), "tcp", c.Address)
	if err != nil {
		t.Fatalf("cannot connect: %v", err)
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil { //nolint:forcetypeassert // The network is TCP.
		t.Fatal(err)
	}
	return conn
}

// request returns the header of a request with a body of a size.
func request(c Client, method, path, fields string, size int) string {
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n%s", method, path, c.Address, size, fields)
	if c.Token != "" {
		head += "Authorization: Bearer " + c.Token + "\r\n"
	}
	return head + "\r\n"
}

// answer sends a request and returns the response; nil if the server has closed the connection.
func (c Client) answer(conn net.Conn, text string) *http.Response {
	_ = conn.SetReadDeadline(time.Now().Add(patience)) // It fails like the read.
	if _, err := io.WriteString(conn, text); err != nil {
		return nil
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp
}

// open returns a function that sends a text, and nothing else.
func open(text string) func(testing.TB, Client, int) func() {
	return func(t testing.TB, c Client, _ int) func() {
		t.Helper()
		conn := c.dial(t)
		_, _ = io.WriteString(conn, text) // The server may have closed the connection.
		return func() { _ = conn.Close() }
	}
}

// part returns a function that sends a request with the first byte of its body.
func part(method string, path func(Client, int) string) func(testing.TB, Client, int) func() {
	return func(t testing.TB, c Client, i int) func() {
		t.Helper()
		const size = 100_000
		return open(request(c, method, path(c, i), "Content-Type: application/vnd.oci.image.manifest.v1+json\r\n", size)+
			"{")(t, c, i)
	}
}

// unread returns a function that sends a request, and does not read the response.
func unread(path func(Client, int) string) func(testing.TB, Client, int) func() {
	return func(t testing.TB, c Client, i int) func() {
		t.Helper()
		return open(request(c, http.MethodGet, path(c, i), "", 0))(t, c, i)
	}
}

// upload starts an upload to a repository of its own, and sends a part of its content if it is slow.
func (c Client) upload(t testing.TB, i int, isSlow bool) func() {
	t.Helper()
	conn := c.dial(t)
	defer conn.Close()
	resp := c.answer(conn, request(c, http.MethodPost, c.uploads(i), "", 0))
	if resp == nil || resp.StatusCode != http.StatusAccepted {
		return func() {}
	}
	location := resp.Header.Get("Location")
	end := func() {}
	if isSlow {
		const size = 100_000
		end = open(request(c, http.MethodPatch, location, "", size)+"a")(t, c, i)
	}
	return func() {
		end()
		conn := c.dial(t)
		defer conn.Close()
		c.answer(conn, request(c, http.MethodDelete, location, "", 0))
	}
}

// Check fails the test unless a client can pull, search and push, and the server states that it is healthy.
func (c Client) Check(t testing.TB, during string) {
	t.Helper()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	send := func(method, path string, body []byte, want int) http.Header {
		t.Helper()
		address := "http://" + c.Address + path
		r, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+c.Token)
		r.Header.Set("Content-Type", string(oci.MediaTypeOCIManifest))
		resp, err := client.Do(r)
		if err != nil {
			t.Errorf("%s: %s %s: %v", during, method, path, err)
			return nil
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if resp.StatusCode != want || err != nil {
			t.Errorf("%s: %s %s: status %d, want %d: %.300s, %v", during, method, path, resp.StatusCode, want, text, err)
		}
		return resp.Header
	}
	send(http.MethodGet, "/healthz", nil, http.StatusOK)
	send(http.MethodGet, c.Pull, nil, http.StatusOK)
	send(http.MethodGet, "/search?q=boat", nil, http.StatusOK)
	repository := "/v2/" + c.Prefix + "/boats"
	content := []byte("{}")
	location := send(http.MethodPost, repository+"/blobs/uploads/", nil, http.StatusAccepted).Get("Location")
	separator := "?"
	if strings.Contains(location, "?") {
		separator = "&"
	}
	send(http.MethodPut, location+separator+"digest="+oci.DigestOf(content).String(), content, http.StatusCreated)
	empty := map[string]any{
		"mediaType": "application/vnd.oci.empty.v1+json", "digest": oci.DigestOf(content).String(), "size": len(content),
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": oci.MediaTypeOCIManifest, "artifactType": "application/vnd.example", "config": empty,
		"layers": []any{empty},
	})
	if err != nil {
		t.Fatal(err)
	}
	send(http.MethodPut, repository+"/manifests/latest", manifest, http.StatusCreated)
	send(http.MethodGet, repository+"/manifests/latest", nil, http.StatusOK)
}

// PushBlob pushes a large blob, and returns its path.
func (c Client) PushBlob(t testing.TB) string {
	t.Helper()
	content := bytes.Repeat([]byte("content of a large blob\n"), 1<<19)
	conn := c.dial(t)
	defer conn.Close()
	resp := c.answer(conn, request(c, http.MethodPost, "/v2/"+c.Prefix+"/boats/blobs/uploads/", "", 0))
	if resp == nil || resp.StatusCode != http.StatusAccepted {
		t.Fatalf("cannot start an upload: %v", resp)
	}
	digest := oci.DigestOf(content)
	resp = c.answer(
		conn,
		request(c, http.MethodPut, resp.Header.Get("Location")+"&digest="+digest.String(), "", len(content))+string(content),
	)
	if resp == nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("cannot push a blob: %v", resp)
	}
	return "/v2/" + c.Prefix + "/boats/blobs/" + digest.String()
}
