package remote

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

// abort closes the connection without a response.
func abort(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// asMe sends the credentials of the user me to a registry.
func asMe(f *ocitest.Registry) func(*Options) {
	return func(o *Options) { o.Keychain = keychain{f.Host(): {Username: "me", Password: "secret"}} }
}

// withHeaders serves normally and then removes or changes headers of the response.
func withHeaders(f *ocitest.Registry, change func(http.Header)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		recorded := httptest.NewRecorder()
		f.ServeNormally(recorded, r)
		for name, values := range recorded.Header() {
			w.Header()[name] = values
		}
		change(w.Header())
		w.WriteHeader(recorded.Code)
		_, _ = w.Write(recorded.Body.Bytes())
	}
}

// A failed or incomplete HEAD is sent once, and a GET follows.
func TestResolveWithoutHead(t *testing.T) {
	img := ocitest.Hello(t)
	faults := map[string]func(*ocitest.Registry) http.HandlerFunc{
		"closed": func(*ocitest.Registry) http.HandlerFunc { return abort },
	}
	for status := http.StatusBadRequest; status <= http.StatusGatewayTimeout; status++ {
		if http.StatusText(status) != "" && status != http.StatusTooManyRequests {
			faults[strconv.Itoa(status)] = func(*ocitest.Registry) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
			}
		}
	}
	for header, values := range map[string][]string{
		"Docker-Content-Digest": {"", "sha256:x", "sha512:" + strings.Repeat("a", 128)},
		"Content-Type":          {"", "application/json", "text/html"},
		"Content-Length":        {"", "0", "-1"},
	} {
		for _, v := range values {
			faults[header+"="+v] = func(f *ocitest.Registry) http.HandlerFunc {
				return withHeaders(f, func(h http.Header) { h[header] = []string{v} })
			}
		}
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			f := ocitest.NewRegistry(t)
			f.Config.ErrorLog = ocitest.Quiet
			ref := f.Publish(t, img, "v1")
			respond := fault(f)
			f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodHead {
					respond(w, r)
				}
				return r.Method == http.MethodHead
			}
			d, err := testRemote(t, nil).Resolve(t.Context(), ref)
			if err != nil || d.Digest != img.Digest() {
				t.Errorf("%s %v", d.Digest, err)
			}
			if n := f.Count("HEAD "); n != 1 {
				t.Errorf("%d HEAD requests", n)
			}
		})
	}
}

// A manifest is read with any content type that does not contradict its document.
func TestManifestsWithUnusualHeaders(t *testing.T) {
	otherStandard := map[oci.MediaType]string{
		oci.MediaTypeOCIManifest: string(oci.MediaTypeDockerManifest), oci.MediaTypeOCIIndex: string(oci.MediaTypeDockerList),
	}
	for _, a := range []oci.Artifact{ocitest.Hello(t), ocitest.TwoPlatforms(t)} {
		for name, change := range map[string]func(http.Header){
			"no type": func(h http.Header) { h["Content-Type"] = []string{""} },
			"JSON":    func(h http.Header) { h.Set("Content-Type", "application/json; charset=utf-8") },
			"binary":  func(h http.Header) { h.Set("Content-Type", "application/octet-stream") },
			"text":    func(h http.Header) { h.Set("Content-Type", "text/plain;charset=UTF-8") },
			"parameters": func(h http.Header) {
				h.Set("Content-Type", strings.ToUpper(h.Get("Content-Type"))+" ; charset=utf-8")
			},
			"other standard": func(h http.Header) { h.Set("Content-Type", otherStandard[oci.MediaType(h.Get("Content-Type"))]) },
			"no digest":      func(h http.Header) { h.Del("Docker-Content-Digest") },
			"other digest":   func(h http.Header) { h.Set("Docker-Content-Digest", "sha512:"+strings.Repeat("a", 128)) },
			"broken digest":  func(h http.Header) { h.Set("Docker-Content-Digest", "x") },
		} {
			t.Run(name, func(t *testing.T) {
				f := ocitest.NewRegistry(t)
				ref := f.Publish(t, a, "v1")
				respond := withHeaders(f, change)
				f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
					if strings.Contains(r.URL.Path, "/manifests/") {
						respond(w, r)
						return true
					}
					return false
				}
				if err := read(t, testRemote(t, nil), ref); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A registry that refuses the number of tags of a page is asked for fewer, and then for no number, and keeps its
// answer in mind.
func TestRefusedPageSize(t *testing.T) {
	for _, status := range []int{400, 405, 413, 416, 422, 501} {
		for _, most := range []int{1000, 100, 10} {
			f := ocitest.NewRegistry(t)
			list := func(name string) func(http.ResponseWriter, *http.Request) bool {
				return func(w http.ResponseWriter, r *http.Request) bool {
					if n, _ := strconv.Atoi(r.URL.Query().Get("n")); n > most {
						w.WriteHeader(status)
						_, _ = io.WriteString(w, `{"errors":[{"code":"UNSUPPORTED","message":"too high"}]}`)
						return true
					}
					if r.URL.Query().Get("last") == "" {
						w.Header().Set("Link", "<"+r.URL.Path+"?last=v1>; rel=next")
						_, _ = io.WriteString(w, `{"`+name+`":["a"]}`)
					} else {
						_, _ = io.WriteString(w, `{"`+name+`":["b"]}`)
					}
					return true
				}
			}
			r := testRemote(t, nil)
			f.Fault = list("tags")
			if tags, err := r.Tags(t.Context(), f.Ref("v1")); err != nil || !slices.Equal(tags, []string{"a", "b"}) {
				t.Errorf("%d above %d: %v %v", status, most, tags, err)
			}
			f.Requests, f.Fault = nil, list("repositories")
			names, err := r.Repositories(t.Context(), f.Host(), "")
			if err != nil || !slices.Equal(names, []string{"a", "b"}) || len(f.Requests) != 2 {
				t.Errorf("%d above %d: %v %v after %v", status, most, names, err, f.Requests)
			}
		}
	}
}

// A list of tags is complete with every form of links that registries send, and each page is requested once.
func TestLinksToPages(t *testing.T) {
	const path = "/v2/acme/pkg/tags/list"
	for _, link := range []string{
		`<` + path + `?last=a>; rel="next"`,
		`<` + path + `?last=a>;rel=next`,
		`<` + path + `?last=a>; rel='next'`,
		`<` + path + `?last=a>; REL = "Next"`,
		`<` + path + `?last=a>; rel="next last"`,
		`<` + path + `?last=a>; title="a, b; c"; rel="next"`,
		`<` + path + `?last=a>; flag; rel="next"`,
		`<` + path + `?last=a>`,
		path + `?last=a; rel="next"`,
		path + `?last=a`,
		`<?last=a>; rel="next"`,
		`<list?last=a>; rel="next"`,
		`<http://HOST` + path + `?last=a>; rel="next"`,
		`<https://HOST` + path + `?last=a>; rel="next"`,
		`<http://HOST/api/docker/local` + path + `?last=a>; rel="next"`,
		`<` + path + `?last=a&n=1,000;x>; rel="next"`,
		`<` + path + `>; rel="first", <` + path + `?last=a>; rel="next", <` + path + `?last=z>; rel="last"`,
		`<` + path + `>; rel="first"|<` + path + `?last=a>; rel="next"`,
	} {
		f := ocitest.NewRegistry(t)
		f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.RawQuery, "last=a") {
				// Several registries link from the last page to itself.
				w.Header().Set("Link", "<"+r.URL.String()+`>; rel="next"`)
				_, _ = io.WriteString(w, `{"tags":["b"]}`)
				return true
			}
			for value := range strings.SplitSeq(strings.ReplaceAll(link, "HOST", r.Host), "|") {
				w.Header().Add("Link", value)
			}
			_, _ = io.WriteString(w, `{"tags":["a"]}`)
			return true
		}
		tags, err := testRemote(t, nil).Tags(t.Context(), f.Ref("v1"))
		if err != nil || !slices.Equal(tags, []string{"a", "b"}) || len(f.Requests) != 2 {
			t.Errorf("%s: got %v, %v after %d requests", link, tags, err, len(f.Requests))
		}
	}
}

// A list is not shorter if a later page cannot be read.
func TestLostPages(t *testing.T) {
	f := ocitest.NewRegistry(t)
	f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("last") != "" {
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
		w.Header().Set("Link", `<?last=a>; rel="next"`)
		_, _ = io.WriteString(w, `{"tags":["a"],"repositories":["a"]}`)
		return true
	}
	r := testRemote(t, nil)
	_, err := r.Tags(t.Context(), f.Ref("v1"))
	ocitest.WantCode(t, err, ErrRegistryUnavailable)
	_, err = r.Repositories(t.Context(), f.Host(), "")
	ocitest.WantCode(t, err, ErrRegistryUnavailable)
}

func TestListsWithoutEntries(t *testing.T) {
	for _, body := range []string{`{"name":"acme/pkg","tags":null}`, `{"tags":[],"repositories":null}`, `{}`} {
		f := ocitest.NewRegistry(t)
		f.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, body)
			return true
		}
		r := testRemote(t, nil)
		tags, err := r.Tags(t.Context(), f.Ref("v1"))
		names, nameErr := r.Repositories(t.Context(), f.Host(), "")
		if err != nil || nameErr != nil || len(tags)+len(names) != 0 {
			t.Errorf("%s: %v %v %v %v", body, tags, err, names, nameErr)
		}
	}
}

// A challenge is met in every spelling, and those for tokens first.
func TestUnusualChallenges(t *testing.T) {
	for name, challenges := range map[string][]string{
		"upper case":      {`BEARER REALM="TOKENS",SERVICE="x"`},
		"white space":     {`Bearer   realm = "TOKENS" , service = "x" `},
		"no quotes":       {`bearer realm=TOKENS,service=x`},
		"several headers": {`Negotiate`, `Basic realm="x"`, `Bearer realm="TOKENS"`},
		"one header":      {`Negotiate abc==, Basic realm="x", Bearer realm="TOKENS", Digest nonce=1`},
		"basic is broken": {`Basic realm="x", Bearer realm="TOKENS"`},
		"twice":           {`Bearer`, `Bearer realm="TOKENS"`},
	} {
		for _, body := range []string{`{"token":"good"}`, `{"access_token":"good"}`, `{"token":"good","expires_in":1}`} {
			f := ocitest.NewRegistry(t)
			ref := f.Publish(t, ocitest.Hello(t), "v1")
			tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, body)
			}))
			f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("Authorization") == "Bearer good" {
					return false
				}
				for _, c := range challenges {
					w.Header().Add("WWW-Authenticate", strings.ReplaceAll(c, "TOKENS", tokens.URL))
				}
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
			if err := read(t, testRemote(t, asMe(f)), ref); err != nil {
				t.Errorf("%s, %s: %v", name, body, err)
			}
			tokens.Close()
		}
	}
}

// Basic credentials are sent if a registry also names a token server that does not work.
func TestBasicAfterABrokenTokenServer(t *testing.T) {
	f := ocitest.NewRegistry(t)
	ref := f.Publish(t, ocitest.Hello(t), "v1")
	f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if user, _, _ := r.BasicAuth(); user == "me" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="", Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	if err := read(t, testRemote(t, asMe(f)), ref); err != nil {
		t.Error(err)
	}
}

// A registry can send its challenge only for the root of its API.
func TestChallengeOfTheRoot(t *testing.T) {
	f := ocitest.NewRegistry(t)
	ref := f.Publish(t, ocitest.Hello(t), "v1")
	f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if user, _, _ := r.BasicAuth(); user == "me" {
			return false
		}
		if r.URL.Path == "/v2/" {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	if err := read(t, testRemote(t, asMe(f)), ref); err != nil {
		t.Error(err)
	}
	ocitest.WantCode(t, read(t, testRemote(t, nil), ref), ErrUnauthorized)
}

// The list of repositories needs a token with a scope of its own.
func TestTokenForTheListOfRepositories(t *testing.T) {
	f := ocitest.NewRegistry(t)
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"token":%q}`, r.URL.Query().Get("scope"))
	}))
	t.Cleanup(tokens.Close)
	wanted := wantBearer("registry:catalog:*", tokens.URL)
	f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if !wanted(w, r) {
			_, _ = io.WriteString(w, `{"repositories":["acme/pkg"]}`)
		}
		return true
	}
	if names, err := testRemote(t, nil).Repositories(t.Context(), f.Host(), ""); err != nil || len(names) != 1 {
		t.Errorf("%v %v", names, err)
	}
}

// A registry behind a proxy that terminates TLS names itself with another scheme or port. No other host is meant.
func TestHomeURL(t *testing.T) {
	for in, want := range map[string]string{
		"http://registry.acme.test/v2/x":       "https://registry.acme.test/v2/x",
		"https://registry.acme.test:443/v2/?x": "https://registry.acme.test/v2/?x",
		"http://registry.acme.test:80/":        "https://registry.acme.test/",
		"https://REGISTRY.acme.test/":          "https://registry.acme.test/",
		"http://registry.acme.test:5000/":      "http://registry.acme.test:5000/",
		"http://other.acme.test/":              "http://other.acme.test/",
		"ftp://registry.acme.test/":            "ftp://registry.acme.test/",
	} {
		u, err := url.Parse(in)
		ocitest.Must(t, err)
		if got := testRemote(t, nil).session("registry.acme.test").homeURL(u).String(); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// The list of referrers is read also if its content type is a general one.
func TestReferrersWithAnUnusualContentType(t *testing.T) {
	for _, contentType := range []string{string(oci.MediaTypeOCIIndex) + "; charset=utf-8", "application/json", ""} {
		f := ocitest.NewRegistry(t)
		f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
			w.Header()["Content-Type"] = []string{contentType}
			if strings.Contains(r.URL.Path, "/referrers/") {
				_, _ = fmt.Fprintf(w, `{"schemaVersion":2,"manifests":[{"mediaType":%q,"digest":%q,"size":2}]}`,
					oci.MediaTypeOCIManifest, ocitest.EmptyDigest)
			} else {
				w.WriteHeader(http.StatusNotFound)
			}
			return true
		}
		subject := f.Ref("v1").WithDigest(oci.MustParseDigest(ocitest.EmptyDigest))
		found, err := testRemote(t, nil).Referrers(t.Context(), subject, "")
		if err != nil || len(found) != 1 {
			t.Errorf("%q: %v %v", contentType, found, err)
		}
	}
}
