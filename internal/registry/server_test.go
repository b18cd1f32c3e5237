package registry_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/tokens"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

func TestAPushIsFoundWithoutARestart(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	s.waitUntil(
		t, "the package is found", func() bool { return slices.Contains(s.found(t, "", "boat"), "acme/provider-boats") },
	)
	s.mustPush(t, "acme/provider-boats:v1.1.0", "Raft")
	s.waitUntil(
		t, "the kind of the new version is found",
		func() bool { return slices.Contains(s.found(t, "", "kind:Raft"), "acme/provider-boats") },
	)
	if got := s.found(t, "", "kind:Boat"); len(got) != 0 {
		t.Errorf("a kind that the newest version does not have: %q", got)
	}
}

// TestAnonymousViewEqualsAServerWithoutPrivatePackages compares every response to an anonymous client of a server with
// private packages and of a server that never had them.
func TestAnonymousViewEqualsAServerWithoutPrivatePackages(t *testing.T) {
	with, without := start(t, nil), start(t, nil)
	for _, s := range []*server{with, without} {
		s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
		s.mustPush(t, "other/provider-cars:v1.0.0", "Car")
	}
	with.mustPush(t, "acme/secret/provider-boats:v1.0.0", "Boat")
	with.mustPush(t, "acme/secret/provider-plans:v1.0.0", "Plan")
	for _, s := range []*server{with, without} {
		s.waitUntil(
			t, "everything is indexed", func() bool { return s.indexed(t) == map[*server]int{with: 4, without: 2}[s] },
		)
	}
	secret := oci.MustParseReference(host + "/acme/secret/provider-plans:v1.0.0")
	root, err := with.client(t, with.admin).Resolve(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	digest := root.Digest.String()
	targets := []string{
		"/v2/", "/v2/_catalog", "/v2/_catalog?n=1", "/v2/_catalog?last=acme/secret", "/healthz", "/metrics",
		"/api/v1/search?q=provider", "/api/v1/search?q=plan", "/api/v1/search?q=pln", "/api/v1/search?q=kind:Plan",
		"/api/v1/search?q=kind:Boat",
		"/api/v1/search?q=boat", "/api/v1/search", "/api/v1/search?q=type:Provider", "/api/v1/search?q=secret",
		"/api/v1/search?q=group:*.example.org",
	}
	for _, repository := range []string{
		"acme/secret/provider-plans", "acme/secret", "acme/secret/never", "acme/provider-boats", "acme/never",
	} {
		for _, rest := range []string{
			"/tags/list", "/tags/list?n=1", "/manifests/v1.0.0", "/manifests/latest", "/manifests/" + digest, "/manifests/!",
			"/blobs/" + digest,
			"/blobs/uploads/", "/blobs/uploads/1", "/blobs/nothing", "/referrers/" + digest, "/referrers/nothing", "/", "",
		} {
			targets = append(targets, "/v2/"+repository+rest)
		}
	}
	for _, target := range targets {
		for _, method := range []string{
			http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions,
		} {
			for _, anonymous := range []bool{false, true} {
				var got [2]string
				for i, s := range []*server{with, without} {
					token := ""
					if anonymous {
						token = s.anonymousToken(t, target)
					}
					got[i] = snapshot(t, s.do(t, method, target, token, nil))
				}
				if got[0] != got[1] {
					t.Errorf(
						"%s %s (anonymous token: %v):\n%s\nwithout private packages:\n%s", method, target, anonymous, got[0], got[1],
					)
				}
			}
		}
	}
	mount := "/v2/acme/provider-boats/blobs/uploads/?mount=" + digest + "&from=acme/secret/provider-plans"
	if got := with.do(t, http.MethodPost, mount, with.token(t, "carol", []string{"acme/*"}, access.Publish), nil).
		StatusCode; got != http.StatusForbidden {
		t.Errorf("a mount of a private blob by another user: %d", got)
	}
}

// anonymousToken returns the bearer token of a client without credentials for the repository in a path.
func (s *server) anonymousToken(t testing.TB, target string) string {
	t.Helper()
	repository, _, _ := strings.Cut(strings.TrimPrefix(target, "/v2/"), "/tags")
	for _, end := range []string{"/manifests", "/blobs", "/referrers"} {
		repository, _, _ = strings.Cut(repository, end)
	}
	return s.bearer(t, "", "repository:"+repository+":pull,push")
}

func TestATokenAllowsOnlyItsScope(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	s.mustPush(t, "acme/secret/provider-boats:v1.0.0", "Boat")
	publisher := s.token(t, "alice", []string{"acme/provider-boats"}, access.Publish)
	everywhere := s.token(t, "alice", []string{"acme/*"}, access.Publish)
	creator := s.token(t, "alice", []string{"acme/*"}, access.Create)
	// Clients such as docker and xpkg ask for a bearer token for the repository of the push.
	similar := s.bearer(t, s.admin, "repository:acme/provider_boats:pull,push")
	stranger := s.token(t, "carol", []string{"*"}, access.Actions()...)
	reader := s.token(t, "bob", []string{"acme/secret/*"}, access.Read)
	for name, c := range map[string]struct {
		token, reference string
		want             error
	}{
		"a new version":                       {publisher, "acme/provider-boats:v1.1.0", nil},
		"a new repository":                    {publisher, "acme/provider-rafts:v1.0.0", remote.ErrUnauthorized},
		"a new repository of a publisher":     {everywhere, "acme/provider-rafts:v1.0.0", remote.ErrUnauthorized},
		"a new repository in the scope":       {creator, "acme/provider-cars:v1.0.0", nil},
		"another organisation":                {creator, "other/provider-cars:v1.0.0", remote.ErrUnauthorized},
		"a user without the names":            {stranger, "acme/provider-boats:v1.2.0", remote.ErrUnauthorized},
		"a reader":                            {reader, "acme/secret/provider-boats:v1.2.0", remote.ErrUnauthorized},
		"a reserved name":                     {s.admin, "search/provider-boats:v1.0.0", remote.ErrRefused},
		"a similar name":                      {s.admin, "acme/provider_boats:v1.0.0", remote.ErrRefused},
		"a similar name, with a bearer token": {similar, "acme/provider_boats:v1.0.0", remote.ErrRefused},
	} {
		if err := s.push(t, c.token, c.reference, "Boat"); !errors.Is(err, c.want) && (err != nil || c.want != nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	const upload = "/v2/acme/provider-boats/blobs/uploads/"
	answer := s.do(t, http.MethodPost, upload, s.anonymousToken(t, upload), nil)
	if body, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusForbidden || !strings.Contains(
		string(body), "xpkg registry token create --dir DIR --repository acme/provider-boats --action publish-new`",
	) {
		t.Errorf("an upload with an anonymous token: %d %s, %v", answer.StatusCode, body, err)
	}
	yanker := s.token(t, "alice", []string{"acme/*"}, access.Yank)
	for _, token := range []string{everywhere, yanker} {
		if got := s.do(t, http.MethodPost, "/v2/acme/provider-rafts/blobs/uploads/", token, nil).
			StatusCode; got != http.StatusForbidden {
			t.Errorf("an upload to a new repository: %d", got)
		}
	}
	list, err := io.ReadAll(s.do(t, http.MethodGet, "/v2/_catalog", s.admin, nil).Body)
	if err != nil || strings.Contains(string(list), "rafts") {
		t.Errorf("the repositories are %s, %v", list, err)
	}
	target := "/v2/acme/secret/provider-boats/manifests/v1.0.0"
	for name, c := range map[string]struct {
		token string
		want  int
	}{
		"without credentials": {"", http.StatusUnauthorized}, "a reader": {reader, http.StatusOK},
		"a token for another repository": {publisher, http.StatusNotFound},
		"a user without permission":      {stranger, http.StatusNotFound},
		"a wrong token":                  {"xpkg_wrong", http.StatusUnauthorized},
	} {
		if got := s.do(t, http.MethodGet, target, c.token, nil).StatusCode; got != c.want {
			t.Errorf("read by %s: %d, want %d", name, got, c.want)
		}
	}
}

func TestVersionsNeverChange(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	for _, tag := range []string{"v1", "latest", "main"} {
		s.mustPush(t, "acme/provider-boats:"+tag, "Boat")
		s.mustPush(t, "acme/provider-boats:"+tag, "Raft")
	}
	s.mustPush(t, "acme/provider-boats:v2024.01.05", "Boat")
	for _, tag := range []string{"v1.0.0", "1.0.0", "v1.00.0", "v01.0.0", "1.0.00", "v2024.01.05", "v2024.1.5"} {
		if err := s.push(t, s.admin, "acme/provider-boats:"+tag, "Raft"); !errors.Is(err, remote.ErrImmutable) {
			t.Errorf("the same version with other content as %s: %v", tag, err)
		}
	}
	s.mustPush(t, "acme/provider-boats:1.0.0", "Boat")
	root, err := s.client(t, s.admin).Artifact(t.Context(), oci.MustParseReference(host+"/acme/provider-boats:latest"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := oci.ReadSmall(t.Context(), root, root.Root(), oci.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	resp := s.do(t, http.MethodPut, "/v2/acme/provider-boats/manifests/"+root.Root().Digest.String()+
		"?tag=v1.0.0", s.admin, bytes.NewReader(raw))
	if resp.StatusCode != http.StatusConflict {
		t.Errorf("the same version in the query of a push by digest: %d", resp.StatusCode)
	}
}

func TestARevokedTokenEndsItsBearerTokens(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/secret/provider-boats:v1.0.0", "Boat")
	secret := s.token(t, "bob", []string{"acme/secret/*"}, access.Read)
	bearer := s.bearer(t, secret, "repository:acme/secret/provider-boats:pull")
	target := "/v2/acme/secret/provider-boats/tags/list"
	if got := s.do(t, http.MethodGet, target, bearer, nil).StatusCode; got != http.StatusOK {
		t.Fatalf("before: %d", got)
	}
	store := tokens.Open(s.dir, nil)
	all, err := store.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range all {
		if token.User == "bob" {
			if err := store.Revoke(token.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, token := range []string{bearer, secret} {
		if got := s.do(t, http.MethodGet, target, token, nil).StatusCode; got != http.StatusUnauthorized {
			t.Errorf("after: %d", got)
		}
	}
}

func TestABearerTokenAllowsOnlyWhatTheClientRequested(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	pull := s.bearer(t, s.admin, "repository:acme/provider-boats:pull")
	for name, c := range map[string]struct {
		method, target string
		want           int
	}{
		"the pull":           {http.MethodGet, "/v2/acme/provider-boats/tags/list", http.StatusOK},
		"a push":             {http.MethodPost, "/v2/acme/provider-boats/blobs/uploads/", http.StatusUnauthorized},
		"a deletion":         {http.MethodDelete, "/v2/acme/provider-boats/manifests/v1.0.0", http.StatusUnauthorized},
		"another repository": {http.MethodGet, "/v2/acme/provider-rafts/tags/list", http.StatusUnauthorized},
	} {
		if got := s.do(t, c.method, c.target, pull, nil).StatusCode; got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := s.do(t, http.MethodGet, "/v2/acme/provider-boats/tags/list", pull+"x", nil).
		StatusCode; got != http.StatusUnauthorized {
		t.Errorf("a changed bearer token: %d", got)
	}
}

func TestAStatusNeedsItsOwnPermission(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	s.mustPush(t, "acme/provider-boats:v1.1.0", "Raft")
	ref := oci.MustParseReference(host + "/acme/provider-boats:v1.1.0")
	yanked := catalog.Status{State: catalog.Yanked, Reason: catalog.Broken, Message: "it sinks", ReplacedBy: "v1.0.0"}
	publisher := s.client(t, s.token(t, "alice", []string{"acme/*"}, access.Publish))
	if _, err := packagestatus.Write(t.Context(), publisher, ref, yanked); !errors.Is(err, remote.ErrUnauthorized) {
		t.Errorf("by a publisher: %v", err)
	}
	yanker := s.client(t, s.token(t, "alice", []string{"acme/*"}, access.Yank))
	digest, err := packagestatus.Write(t.Context(), yanker, ref, yanked)
	if err != nil {
		t.Fatal(err)
	}
	s.waitUntil(t, "the former version is the newest", func() bool { return len(s.found(t, "", "kind:Boat")) == 1 })
	got, err := packagestatus.Read(t.Context(), s.client(t, ""), ref.WithDigest(digest))
	if err != nil || got == nil || got.Message != "it sinks" || got.State != catalog.Yanked {
		t.Fatalf("got %+v, %v", got, err)
	}
	removed := catalog.Status{State: catalog.Removed, Reason: catalog.Other}
	if _, err := packagestatus.Write(t.Context(), yanker, ref, removed); !errors.Is(err, remote.ErrUnauthorized) {
		t.Errorf("the status of a deletion without the permission to delete: %v", err)
	}
	missing := `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":"` +
		catalog.StatusArtifactType + `",` +
		`"config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":"` + digest.String() + `","size":2},` +
		`"layers":[{"mediaType":"` + catalog.StatusArtifactType + `","digest":"sha256:` + strings.Repeat("a", 64) +
		`","size":99}],` +
		`"subject":{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"` + digest.String() + `","size":2}}`
	yankToken := s.token(t, "alice", []string{"acme/*"}, access.Yank)
	if got := s.do(t, http.MethodPut, "/v2/acme/provider-boats/manifests/"+
		catalog.StatusTag(digest), yankToken, strings.NewReader(missing)).StatusCode; got < 400 {
		t.Errorf("a status whose layer is missing: %d", got)
	}
	if got, err := packagestatus.Read(t.Context(), yanker, ref.WithDigest(digest)); err != nil || got == nil ||
		got.State != catalog.Yanked {
		t.Errorf("after a status was refused: %+v, %v", got, err)
	}
	both := s.token(t, "alice", []string{"acme/*"}, access.Yank, access.Delete)
	const scope = "repository:acme/provider-boats:pull,push"
	for name, token := range map[string]string{"token": both, "bearer token": s.bearer(t, both, scope)} {
		for _, status := range []catalog.Status{removed, yanked} {
			if _, err := packagestatus.Write(t.Context(), s.client(t, token), ref, status); err != nil {
				t.Errorf("%s with the permission to delete and a %s: %v", status.State, name, err)
			}
		}
	}
	if _, err := packagestatus.Write(
		t.Context(), s.client(t, s.bearer(t, yankToken, scope)), ref, removed,
	); !errors.Is(err, remote.ErrUnauthorized) {
		t.Errorf("the status of a deletion with a bearer token without the permission to delete: %v", err)
	}
	if err := s.push(t, s.admin, "acme/provider-boats:"+
		catalog.StatusTag(digest), "Boat"); !errors.Is(err, remote.ErrRefused) {
		t.Errorf("a package under the tag of a status: %v", err)
	}
	for name, types := range map[string]string{
		"in the configuration": `"config":{"mediaType":"application/vnd.xpkg.status.v1+json","digest":"` + digest.String() +
			`","size":2}`,
		"in capital letters": `"artifactType":"application/vnd.xpkg.STATUS.v1+json","config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":"` +
			digest.String() + `","size":2}`,
	} {
		manifest := `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",` + types +
			`,"layers":[],"subject":{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"` + digest.String() +
			`","size":2}}`
		resp := s.do(t, http.MethodPut, "/v2/acme/provider-boats/manifests/"+
			oci.DigestOf([]byte(manifest)).String(), s.admin, strings.NewReader(manifest))
		if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusBadRequest ||
			!strings.Contains(string(text), "has the artifact type") {
			t.Errorf("a status with its type %s: %d %s", name, resp.StatusCode, text)
		}
	}
	status, err := yanker.Resolve(t.Context(), ref.WithTag(catalog.StatusTag(digest)))
	if err != nil {
		t.Fatal(err)
	}
	deleter := s.token(t, "alice", []string{"acme/*"}, access.Delete)
	for _, reference := range []string{status.Digest.String(), catalog.StatusTag(digest)} {
		if got := s.do(t, http.MethodDelete, "/v2/acme/provider-boats/manifests/"+reference, deleter, nil).
			StatusCode; got != http.StatusForbidden {
			t.Errorf("deletion of %s: %d", reference, got)
		}
	}
	if got, err := packagestatus.Read(t.Context(), yanker, ref.WithDigest(digest)); err != nil || got == nil ||
		got.State != catalog.Yanked {
		t.Errorf("after its deletion was refused: %+v, %v", got, err)
	}
	if _, err := packagestatus.Write(t.Context(), yanker, ref, catalog.Status{State: catalog.Available}); err != nil {
		t.Fatal(err)
	}
	s.waitUntil(t, "the version is available again", func() bool { return len(s.found(t, "", "kind:Raft")) == 1 })
}

func TestADeletedVersionCannotBePublishedAgain(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	s.mustPush(t, "acme/provider-boats:v1.1.0", "Raft")
	client, ref := s.client(t, s.admin), oci.MustParseReference(host+"/acme/provider-boats:v1.1.0")
	digest, err := packagestatus.Write(t.Context(), client, ref, catalog.Status{
		State: catalog.Removed, Reason: catalog.Licence,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Delete(t.Context(), ref.WithDigest(digest)); err != nil {
		t.Fatal(err)
	}
	s.waitUntil(t, "the version is gone", func() bool { return len(s.found(t, "", "kind:Raft")) == 0 })
	if err := s.push(t, s.admin, "acme/provider-boats:v1.1.0", "Canoe"); !errors.Is(err, remote.ErrImmutable) {
		t.Errorf("other content: %v", err)
	}
	s.checkTombstone(t, ref.WithDigest(digest), "v1.1.0")
	// The same content can be published again. It has its status until that is withdrawn.
	s.mustPush(t, "acme/provider-boats:v1.1.0", "Raft")
	if _, err := packagestatus.Write(t.Context(), client, ref, catalog.Status{State: catalog.Available}); err != nil {
		t.Fatal(err)
	}
	s.waitUntil(t, "the version is available again", func() bool { return len(s.found(t, "", "kind:Raft")) == 1 })
}

// A version that was deleted has a spelling with a leading zero.
func TestADeletedVersionCannotBePublishedInAnotherSpelling(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/provider-boats:v1.01.0", "Boat")
	client, ref := s.client(t, s.admin), oci.MustParseReference(host+"/acme/provider-boats:v1.01.0")
	version, err := client.Resolve(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Delete(t.Context(), ref.WithDigest(version.Digest)); err != nil {
		t.Fatal(err)
	}
	s.checkTombstone(t, ref.WithDigest(version.Digest), "v1.01.0")
	for _, tag := range []string{"v1.01.0", "v1.1.0", "1.1.0"} {
		if err := s.push(t, s.admin, "acme/provider-boats:"+tag, "Raft"); !errors.Is(err, remote.ErrImmutable) {
			t.Errorf("other content as %s: %v", tag, err)
		}
	}
}

func TestAnyClientReadsAPackageWithoutReferrers(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	version, err := s.client(t, "").Resolve(t.Context(), oci.MustParseReference(host+"/acme/provider-boats:v1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	for _, repository := range []string{"acme/provider-boats", "acme/provider-none", "acme/secret/provider-boats"} {
		body, err := io.ReadAll(s.do(t, http.MethodGet, "/v2/"+repository+"/referrers/"+
			version.Digest.String(), s.admin, nil).Body)
		if err != nil || !strings.Contains(string(body), `"manifests":[]`) {
			t.Errorf("the referrers in %s are %s, %v", repository, body, err)
		}
	}
	stranger := s.token(t, "carol", []string{"*"}, access.Read)
	for _, repository := range []string{"acme/provider-none", "acme/secret/provider-boats"} {
		if got := s.do(t, http.MethodGet, "/v2/"+repository+"/tags/list", stranger, nil).
			StatusCode; got != http.StatusNotFound {
			t.Errorf("the tags of %s, which does not exist for the client: %d", repository, got)
		}
	}
	for _, accept := range []string{"", "*/*", "application/*", "text/html, */*;q=0.1"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			r := httptest.NewRequestWithContext(t.Context(), method, "http://"+host+
				"/v2/acme/provider-boats/manifests/v1.0.0", nil)
			if accept != "" {
				r.Header.Set("Accept", accept)
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != http.StatusOK || w.Header().Get("Docker-Content-Digest") != version.Digest.String() {
				t.Errorf("%s of a client that accepts %q: %d", method, accept, w.Code)
			}
		}
	}
}

// A client repeats the part of an upload that exceeded the limit.
func TestAnUploadThatExceededTheLimitIsCanceled(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	begun := s.do(t, http.MethodPost, "/v2/acme/provider-boats/blobs/uploads/", s.admin, nil)
	location := begun.Header.Get("Location")
	part := bytes.Repeat([]byte("x"), 600<<10)
	if got := s.do(t, http.MethodPatch, location, s.admin, bytes.NewReader(part)).StatusCode; got != http.StatusAccepted {
		t.Fatalf("the first part: %d", got)
	}
	for range 3 {
		if got := s.do(t, http.MethodPatch, location, s.admin, bytes.NewReader(part)).
			StatusCode; got != http.StatusRequestEntityTooLarge {
			t.Errorf("a part that exceeds the limit: %d", got)
		}
	}
	separator := "?"
	if strings.Contains(location, "?") {
		separator = "&"
	}
	if got := s.do(t, http.MethodPut, location+separator+"digest="+oci.DigestOf(part).String(), s.admin, http.NoBody).
		StatusCode; got < http.StatusBadRequest {
		t.Errorf("the end of the upload, which was not canceled: %d", got)
	}
}

// TestAnUploadIsCanceled cancels an upload, as the OCI distribution specification describes, and again.
func TestAnUploadIsCanceled(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	location := s.do(t, http.MethodPost, "/v2/acme/provider-boats/blobs/uploads/", s.admin, nil).Header.Get("Location")
	if got := s.do(t, http.MethodDelete, location, s.admin, nil).StatusCode; got != http.StatusNoContent {
		t.Errorf("the cancellation: %d", got)
	}
	if got := s.do(t, http.MethodDelete, location, s.admin, nil).StatusCode; got < http.StatusBadRequest {
		t.Errorf("the second cancellation: %d", got)
	}
}

func TestHostileRequestsAreRefused(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	s.mustPush(t, "acme/secret/provider-boats:v1.0.0", "Boat")
	for _, target := range []string{
		"/v2/acme/provider-boats/../secret/provider-boats/tags/list", "/v2//acme/secret/provider-boats/tags/list",
		"/v2/acme/./secret/provider-boats/manifests/v1.0.0", "/v2/acme/secret/provider-boats/manifests/v1.0.0/",
		"/v2/ACME/secret/provider-boats/tags/list",
		"/v2/acme/secret/provider-boats/tags/list/../list", "/v2/acme\\secret/tags/list",
		"/v2/acme/secret%2fprovider-boats/tags/list",
	} {
		if got := s.do(t, http.MethodGet, target, s.bearer(t, "", ""), nil).StatusCode; got != http.StatusNotFound &&
			got != http.StatusUnauthorized {
			t.Errorf("%s: %d", target, got)
		}
	}
	huge := bytes.NewReader(make([]byte, 5<<20))
	if got := s.do(t, http.MethodPut, "/v2/acme/provider-boats/manifests/v2.0.0", s.admin, huge).
		StatusCode; got != http.StatusBadRequest {
		t.Errorf("a huge manifest: %d", got)
	}
	if got := s.do(t, http.MethodGet, "/token?"+strings.Repeat("scope=a&", 200), "", nil).
		StatusCode; got != http.StatusBadRequest {
		t.Errorf("many scopes: %d", got)
	}
}
