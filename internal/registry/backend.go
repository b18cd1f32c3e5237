package registry

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/cluster"
	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/internal/registry/storage"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// backend is a registry of another project. The server forwards requests with its own credentials.
type backend struct {
	host     string
	options  BackendOptions
	client   *remote.Client
	proxy    *httputil.ReverseProxy
	log      *slog.Logger
	registry name.Registry
	// written is called after each request that writes or deletes a manifest, with its tag or digest; nil calls nothing.
	written func(repository, reference string)
	// id identifies the server in the header Via of its requests.
	id string

	mu sync.Mutex
	// sessions are the connections with credentials, by scope.
	sessions map[string]backendSession
}

// backendSession is a connection with a bearer token that the library renews.
type backendSession struct {
	transport http.RoundTripper
	since     time.Time
}

// sessionLife is the time for which a session is used. The library renews tokens, but not credentials that have
// changed. The token of the identity of a cloud is valid for three more minutes when a session gets it.
const sessionLife = 2 * time.Minute

// BackendOptions configure the access to a registry of another project.
type BackendOptions struct {
	// Host is the registry, with its port if it has one.
	Host string
	// Repositories are the repositories to index. If it is empty, the registry must list its repositories.
	Repositories []string
	// PublishIndex publishes the index of the public packages in the registry, as index:main.
	PublishIndex bool
	// Cluster is the cluster in which several servers agree, of which one publishes the index; nil means that this is the
	// only server in front of the registry.
	Cluster *cluster.Config
	// Remote configures the connection.
	Remote remote.Options
	// PlainHTTP uses HTTP without TLS.
	PlainHTTP bool
	// Transport replaces connections; nil means [http.DefaultTransport].
	Transport http.RoundTripper
}

func openBackend(o BackendOptions, log *slog.Logger) (*backend, error) {
	var options []name.Option
	if o.PlainHTTP {
		options = append(options, name.Insecure)
	}
	registry, err := name.NewRegistry(o.Host, options...)
	if err != nil {
		return nil, ErrServer.New(err, "%q is not the host of a registry", o.Host)
	}
	b := &backend{
		host: o.Host, options: o, client: remote.New(o.Remote), log: log, registry: registry, id: rand.Text(),
		sessions: map[string]backendSession{},
	}
	next := o.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	b.options.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Add(viaHeader, "1.1 "+b.id)
		return next.RoundTrip(r)
	})
	b.proxy = &httputil.ReverseProxy{
		Rewrite: b.rewrite, Transport: roundTripper(b.roundTrip), ModifyResponse: b.modify, ErrorHandler: b.failed,
	}
	return b, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// viaHeader names the servers that have forwarded a request (RFC 9110, section 7.6.3).
const viaHeader = "Via"

// isOwn reports whether this server has forwarded a request: the backend is the server itself, or forwards requests to
// it.
func (b *backend) isOwn(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values(viaHeader), func(via string) bool { return strings.Contains(via, b.id) })
}

// forwardedHeaders are the headers of requests that the backend receives.
var forwardedHeaders = []string{
	viaHeader, "Accept", "Content-Type", "Content-Length", "Content-Range", "Range", "If-None-Match", "User-Agent",
}

func (b *backend) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = b.registry.Scheme(), b.registry.RegistryStr(), ""
	header := http.Header{}
	for _, key := range forwardedHeaders {
		if values, ok := r.In.Header[key]; ok {
			header[key] = values
		}
	}
	r.Out.Header = header
}

// roundTrip sends a request with the credentials for its repository.
func (b *backend) roundTrip(r *http.Request) (*http.Response, error) {
	api, ok := protocol.Parse(r.URL.Path)
	if !ok {
		return nil, ErrServer.New(nil, "the path %q is not part of the API", r.URL.Path)
	}
	t, err := b.session(r.Context(), scopeOf(api, r))
	if err != nil {
		return nil, err
	}
	return t.RoundTrip(r)
}

// catalogScope is the scope of the list of repositories (CNCF distribution, "Docker Registry v2 authentication").
const catalogScope = "registry:catalog:*"

func scopeOf(api protocol.Request, r *http.Request) string {
	switch {
	case api.Endpoint == protocol.Repositories:
		return catalogScope
	case r.Method == http.MethodDelete:
		return "repository:" + api.Repository + ":" + transport.DeleteScope
	case protocol.IsRead(r) && api.Endpoint != protocol.Upload:
		return "repository:" + api.Repository + ":" + transport.PullScope
	}
	return "repository:" + api.Repository + ":" + transport.PushScope
}

// mostSessions limits the sessions that are kept.
const mostSessions = 1000

func (b *backend) session(ctx context.Context, scope string) (http.RoundTripper, error) {
	b.mu.Lock()
	kept, ok := b.sessions[scope]
	if len(b.sessions) > mostSessions {
		clear(b.sessions)
	}
	b.mu.Unlock()
	if ok && time.Since(kept.since) < sessionLife {
		return kept.transport, nil
	}
	auth := authn.Anonymous
	if b.options.Remote.Keychain != nil {
		var err error
		if auth, err = b.options.Remote.Keychain.Resolve(b.registry); err != nil {
			// The content can be public.
			b.log.Warn("cannot get the credentials for the backend", "error", err)
		}
	}
	t, err := transport.NewWithContext(ctx, b.registry, auth, b.options.Transport, []string{scope})
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions[scope] = backendSession{t, time.Now()}
	return t, nil
}

// modify makes the addresses in a response relative to this server, and replaces the bodies of responses for missing
// content, which may contain names.
func (b *backend) modify(resp *http.Response) error {
	header := resp.Header
	header.Del("WWW-Authenticate")
	header.Del("Set-Cookie")
	if location, err := url.Parse(header.Get("Location")); err == nil && location.Host == b.registry.RegistryStr() {
		location.Scheme, location.Host, location.User = "", "", nil
		header.Set("Location", location.String())
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		b.log.Warn(
			"the backend rejects the credentials of this server", "path", resp.Request.URL.Path, "status", resp.StatusCode,
		)
		return replaceBody(
			resp, http.StatusBadGateway, protocol.CodeDenied, "the registry behind this server rejects its credentials",
		)
	case http.StatusRequestedRangeNotSatisfiable:
		// The length in the header can be that of the blob, which the body does not have (CNCF distribution).
		sizes := header.Values("Content-Range")
		err := replaceBody(resp, http.StatusRequestedRangeNotSatisfiable, "RANGE_INVALID", "the content has no such range")
		resp.Header["Content-Range"] = sizes
		return err
	case http.StatusNotFound:
		code := missingCode(resp.Request.URL.Path)
		if api, _ := protocol.Parse(resp.Request.URL.Path); api.Endpoint == protocol.Referrers &&
			!statesNameUnknown(resp.Body) {
			code = protocol.CodeUnsupported
		}
		return replaceBody(resp, http.StatusNotFound, code, "not found")
	}
	return nil
}

// statesNameUnknown reports whether a response states that a repository does not exist. A registry without lists of
// referrers responds with 404, too, and clients then read the list in the tag for it unless the code states that the
// repository does not exist.
func statesNameUnknown(body io.Reader) bool {
	var found struct{ Errors []struct{ Code string } }
	const most = 64 << 10
	err := json.NewDecoder(io.LimitReader(body, most)).Decode(&found)
	return err == nil && len(found.Errors) > 0 && found.Errors[0].Code == protocol.CodeNameUnknown
}

// missingCode returns the code for missing content at a path.
func missingCode(path string) string {
	api, _ := protocol.Parse(path)
	switch api.Endpoint {
	case protocol.Manifest:
		return protocol.CodeManifestUnknown
	case protocol.Blob, protocol.StartUpload:
		return protocol.CodeBlobUnknown
	case protocol.Upload:
		return protocol.CodeUploadUnknown
	default:
		return protocol.CodeNameUnknown
	}
}

func replaceBody(resp *http.Response, status int, code, message string) error {
	raw, err := json.Marshal(map[string]any{"errors": []map[string]string{{"code": code, "message": message}}})
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	resp.StatusCode, resp.Status = status, ""
	resp.Header = http.Header{"Content-Type": {"application/json"}, "Docker-Distribution-Api-Version": {"registry/2.0"}}
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(string(raw))), int64(len(raw))
	if resp.Request.Method == http.MethodHead {
		resp.Body = http.NoBody
	}
	return nil
}

// failed responds to a request that could not be forwarded.
func (b *backend) failed(w http.ResponseWriter, r *http.Request, err error) {
	if !errors.Is(err, context.Canceled) { // The client has disconnected.
		b.log.Warn("cannot forward a request to the backend", "path", r.URL.Path, "error", err)
	}
	protocol.WriteError(
		w, r, http.StatusBadGateway, protocol.CodeUnsupported,
		"the request cannot be forwarded to the registry behind this server; the log of the server has the cause",
	)
}

// ServeHTTP implements images.
func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if api, ok := protocol.Parse(r.URL.Path); ok && !protocol.IsRead(r) && api.Endpoint == protocol.Manifest &&
		b.written != nil {
		defer b.written(api.Repository, api.Reference)
	}
	b.proxy.ServeHTTP(w, withManifestTypes(r))
}

// withManifestTypes returns a request that accepts the types of manifests by their names, if it accepts them by a
// wildcard or accepts all types, because registries know no wildcards.
func withManifestTypes(r *http.Request) *http.Request {
	if api, _ := protocol.Parse(r.URL.Path); api.Endpoint != protocol.Manifest || !protocol.IsRead(r) {
		return r
	}
	accepted := strings.Join(r.Header.Values("Accept"), ",")
	isWildcard := strings.TrimSpace(accepted) == ""
	for part := range strings.SplitSeq(accepted, ",") {
		name, _, _ := strings.Cut(part, ";")
		name = strings.TrimSpace(name)
		isWildcard = isWildcard || name == "*/*" || name == "application/*"
	}
	if !isWildcard {
		return r
	}
	out := r.Clone(r.Context())
	out.Header["Accept"] = slices.Concat(r.Header["Accept"], acceptedManifests())
	return out
}

// hasTags implements images.
func (b *backend) hasTags(ctx context.Context, repository string) (bool, error) {
	ref, err := oci.ParseReference(b.host+"/"+repository+":latest", oci.ParseOptions{})
	if err != nil {
		return false, err
	}
	tags, err := b.client.ExistingTags(ctx, ref)
	return len(tags) > 0, ofBackend(err)
}

// digest implements images.
func (b *backend) digest(ctx context.Context, repository, tag string) (oci.Digest, error) {
	d, err := headDigest(ctx, b.proxy, repository, tag)
	return d, ofBackend(err)
}

// repositories implements images.
func (b *backend) repositories(ctx context.Context) ([]string, error) {
	if len(b.options.Repositories) > 0 {
		return slices.Sorted(slices.Values(b.options.Repositories)), nil
	}
	const mostPages = 1000
	var found []string
	next := protocol.Root + "_catalog?n=1000"
	for range mostPages {
		page, link, err := b.listPage(ctx, next)
		if err != nil {
			return nil, err
		}
		found = append(found, page...)
		if link == "" {
			slices.Sort(found)
			return slices.DeleteFunc(slices.Compact(found), func(name string) bool { return !access.ValidRepository(name) }), nil
		}
		next = link
	}
	return nil, ErrServer.New(nil, "the list of the repositories of %s does not end", b.host)
}

// listPage returns a page of the list of repositories, and the path of the next one.
func (b *backend) listPage(ctx context.Context, path string) (names []string, next string, err error) {
	t, err := b.session(ctx, catalogScope)
	if err != nil {
		return nil, "", ErrServer.New(err, "cannot connect to %s", b.host)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.registry.Scheme()+"://"+b.registry.RegistryStr()+path, nil)
	if err != nil {
		return nil, "", err
	}
	resp, err := t.RoundTrip(r)
	if err != nil {
		return nil, "", ErrServer.New(err, "cannot list the repositories of %s", b.host)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError {
		return nil, "", ErrServer.New(nil, "%s responded %q to the request for its repositories", b.host, resp.Status).
			WithDo("Check %s; the server lists its repositories again at the next update.", b.host)
	}
	var list struct {
		Repositories []string `json:"repositories"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, protocol.LargestManifest)).Decode(&list); err != nil ||
		resp.StatusCode != http.StatusOK {
		return nil, "", ErrServer.New(err, "%s does not list its repositories (status %d)", b.host, resp.StatusCode).
			WithDo("Name the repositories with --repository.")
	}
	return list.Repositories, nextPath(resp.Header.Get("Link")), nil
}

// nextPath returns the path in a Link header, and "" if there is none or if it leads elsewhere.
func nextPath(link string) string {
	target, params, ok := strings.Cut(link, ";")
	if !ok || !strings.Contains(strings.ReplaceAll(params, `"`, ""), "rel=next") {
		return ""
	}
	u, err := url.Parse(strings.Trim(strings.TrimSpace(target), "<>"))
	if err != nil || u.Path != protocol.Root+"_catalog" {
		return ""
	}
	return u.Path + "?" + u.RawQuery
}

// probe implements images. The registry behind the server has a check of its own.
func (b *backend) probe() error { return nil }

// damage implements images. The backend knows its damage.
func (b *backend) damage(func(repository string) bool) storage.Damage { return storage.Damage{} }

// close implements images.
func (b *backend) close() error {
	b.client.Close()
	return nil
}
