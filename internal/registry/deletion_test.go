package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/retention"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// A client that deletes a version with nothing but the distribution API leaves the status with which the version cannot
// be published with other content, and it cannot remove or replace this status.
func TestADeletionByAnyClientLeavesTheStatus(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	s.mustPush(t, "acme/provider-boats:v1.1.0", "Raft")
	owner := s.client(t, s.token(t, "alice", []string{"acme/*"}, access.Publish, access.Yank, access.Delete))
	ref := oci.MustParseReference(host + "/acme/provider-boats:v1.1.0")
	version, err := owner.Artifact(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	digest := version.Root().Digest
	if err := owner.Delete(t.Context(), ref.WithDigest(digest)); err != nil {
		t.Fatal(err)
	}
	push := func() error {
		_, err := owner.Push(t.Context(), ref, build(t, packageYAML("provider-boats", "Canoe")))
		return err
	}
	if err := push(); !errors.Is(err, remote.ErrImmutable) {
		t.Errorf("other content: %v", err)
	}
	status, err := owner.Resolve(t.Context(), ref.WithTag(catalog.StatusTag(digest)))
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Delete(t.Context(), ref.WithDigest(status.Digest)); !errors.Is(err, remote.ErrRefused) {
		t.Errorf("the deletion of the status: %v", err)
	}
	available, err := packagestatus.NewArtifact(version.Root(), catalog.VersionStatus{
		Status: catalog.Status{State: catalog.Available}, Tag: "v1.1.0", Digest: digest,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Push(
		t.Context(), ref.WithTag(catalog.StatusTag(digest)), available,
	); !errors.Is(err, remote.ErrImmutable) {
		t.Errorf("another status: %v", err)
	}
	if err := push(); !errors.Is(err, remote.ErrImmutable) {
		t.Errorf("other content, after the attempts: %v", err)
	}
	s.checkTombstone(t, ref.WithDigest(digest), "v1.1.0")
}

// TestRetentionKeepsWhatPrivatePackagesRequire asks the server, whose published index does not have the private
// packages.
func TestRetentionKeepsWhatPrivatePackagesRequire(t *testing.T) {
	s := start(t, nil)
	for i := range 4 {
		s.mustPush(t, fmt.Sprintf("acme/provider-boats:v1.0.0-rc.%d", i), fmt.Sprintf("Boat%d", i))
	}
	for name, constraint := range map[string]string{"provider-exact": "=v1.0.0-rc.1", "provider-range": "<v1.0.0-rc.3"} {
		stream := bytes.Replace(
			packageYAML(name, "Plan"), []byte("spec:\n"),
			[]byte("spec:\n  dependsOn: [{provider: "+host+"/acme/provider-boats, version: '"+constraint+"'}]\n"), 1,
		)
		if _, err := s.client(t, s.admin).
			Push(t.Context(), oci.MustParseReference(host+"/acme/secret/"+name+":v1.0.0"), build(t, stream)); err != nil {
			t.Fatal(err)
		}
	}
	s.waitUntil(t, "all packages are indexed", func() bool { return s.indexed(t) == 3 })
	owner := s.client(t, s.token(t, "alice", []string{"acme/*"}, access.Read, access.Delete))
	reader := s.client(t, s.token(t, "eve", []string{"acme/*"}, access.Read))
	for i, want := range []bool{false, true, true, false} {
		ref := oci.MustParseReference(fmt.Sprintf("%s/acme/provider-boats:v1.0.0-rc.%d", host, i))
		for name, client := range map[string]*remote.Client{
			"administrator": s.client(t, s.admin), "owner": owner, "reader": reader, "anonymous": s.plainClient(t, nil),
		} {
			got, err := client.IsRequired(t.Context(), ref)
			if mayKnow := name == "administrator" || name == "owner"; err != nil || got != (want && mayKnow) {
				t.Errorf("%s: %s is required: %t, %v", name, ref, got, err)
			}
		}
		d, err := owner.Resolve(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		needed, err := retention.Check(t.Context(), s.client(t, s.admin), retention.Candidate{
			Repository: host + "/acme/provider-boats", Version: catalog.Version{Tag: ref.Tag, Digest: d.Digest},
		})
		if err != nil || (needed != "") != want {
			t.Errorf("the retention keeps %s because %q: %v", ref, needed, err)
		}
	}
}

// The question whether a version is required needs credentials also for a repository that every client reads, to which
// clients send none.
func TestTheQuestionForARequiredVersionIsAskedWithCredentials(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/provider-boats:v1.0.0-rc.1", "Boat")
	stream := bytes.Replace(
		packageYAML("provider-plans", "Plan"), []byte("spec:\n"),
		[]byte("spec:\n  dependsOn: [{provider: "+host+"/acme/provider-boats, version: '=v1.0.0-rc.1'}]\n"), 1,
	)
	if _, err := s.client(t, s.admin).
		Push(t.Context(), oci.MustParseReference(host+"/acme/secret/provider-plans:v1.0.0"), build(t, stream)); err != nil {
		t.Fatal(err)
	}
	s.waitUntil(t, "all packages are indexed", func() bool { return s.indexed(t) == 2 })
	client := s.plainClient(t, password(s.admin))
	ref := oci.MustParseReference(host + "/acme/provider-boats:v1.0.0-rc.1")
	if required, err := client.IsRequired(t.Context(), ref); err != nil || !required {
		t.Errorf("required: %v, %v", required, err)
	}
}

// plainClient returns a client that sends the credentials of a keychain when the server asks for them, to addresses
// without TLS.
func (s *server) plainClient(t testing.TB, keychain authn.Keychain) *remote.Client {
	t.Helper()
	c := remote.New(remote.Options{
		Transport: direct{handler: s}, Attempts: 1, Hosts: map[string]remote.HostOptions{host: {PlainHTTP: true}},
		Keychain: keychain,
	})
	t.Cleanup(c.Close)
	return c
}

// password is a keychain with one password.
type password string

// Resolve implements [authn.Keychain].
func (p password) Resolve(authn.Resource) (authn.Authenticator, error) {
	return &authn.Basic{Username: "any", Password: string(p)}, nil
}

// A deletion that the server refuses changes nothing, although the status is written before it.
func TestARefusedDeletionKeepsTheStatus(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	s.mustPush(t, "acme/provider-boats:v1.1.0", "Raft")
	stream := bytes.Replace(
		packageYAML("provider-plans", "Plan"), []byte("spec:\n"),
		[]byte("spec:\n  dependsOn: [{provider: "+host+"/acme/provider-boats, version: '>=v1.0.0'}]\n"), 1,
	)
	if _, err := s.client(t, s.admin).
		Push(t.Context(), oci.MustParseReference(host+"/acme/secret/provider-plans:v1.0.0"), build(t, stream)); err != nil {
		t.Fatal(err)
	}
	s.waitUntil(t, "all packages are indexed", func() bool { return s.indexed(t) == 2 })
	owner := s.client(t, s.token(t, "alice", []string{"acme/*"}, access.Yank, access.Delete))
	yanked := oci.MustParseReference(host + "/acme/provider-boats:v1.1.0")
	if _, err := packagestatus.Write(t.Context(), owner, yanked, catalog.Status{
		State: catalog.Yanked, Reason: catalog.Broken, Message: "loses data",
	}); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[oci.Reference]catalog.State{
		oci.MustParseReference(host + "/acme/provider-boats:v1.0.0"): catalog.Available, yanked: catalog.Yanked,
	} {
		digest, err := packagestatus.Delete(t.Context(), owner, ref, catalog.Status{
			State: catalog.Removed, Reason: catalog.Licence,
		})
		if !errors.Is(err, remote.ErrRefused) {
			t.Errorf("%s: %v", ref, err)
		}
		got, err := packagestatus.Read(t.Context(), owner, ref.WithDigest(digest))
		if err != nil || got == nil || got.State != want {
			t.Errorf("the status of %s is %+v, %v", ref, got, err)
		}
	}
}

// A registry behind the server can refuse deletions, as CNCF distribution does by default, or the credentials of the
// server. The status is that of before then, also for a client that deletes with nothing but the distribution API.
func TestADeletionThatTheBackendRefusesKeepsTheStatus(t *testing.T) {
	images := localregistry.New(t)
	var code atomic.Int64
	code.Store(http.StatusMethodNotAllowed) // The server deletes its claims after each push.
	address := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			w.WriteHeader(int(code.Load()))
			return
		}
		images.ServeHTTP(w, r)
	})).URL, "http://")
	s := start(t, func(o *registry.Options) {
		o.Backend = &registry.BackendOptions{Host: address, PlainHTTP: true, Repositories: []string{"acme/provider-boats"}}
	})
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	s.mustPush(t, "acme/provider-boats:v1.1.0", "Raft")
	owner := s.client(t, s.admin)
	yanked := oci.MustParseReference(host + "/acme/provider-boats:v1.1.0")
	if _, err := packagestatus.Write(t.Context(), owner, yanked, catalog.Status{
		State: catalog.Yanked, Reason: catalog.Broken, Message: "loses data",
	}); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[oci.Reference]catalog.State{
		oci.MustParseReference(host + "/acme/provider-boats:v1.0.0"): catalog.Available, yanked: catalog.Yanked,
	} {
		version, err := owner.Resolve(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		for refusal, state := range map[int]catalog.State{
			// It can happen later.
			http.StatusMethodNotAllowed: want, http.StatusForbidden: want, http.StatusServiceUnavailable: catalog.Removed,
		} {
			code.Store(int64(refusal))
			before, err := packagestatus.Read(t.Context(), owner, ref.WithDigest(version.Digest))
			if err != nil {
				t.Fatal(err)
			}
			if got := s.do(t, http.MethodDelete, "/v2/acme/provider-boats/manifests/"+version.Digest.String(), s.admin, nil).
				StatusCode; got < http.StatusBadRequest {
				t.Fatalf("%s: the status is %d", ref, got)
			}
			got, err := packagestatus.Read(t.Context(), owner, ref.WithDigest(version.Digest))
			if err != nil || got == nil || got.State != state {
				t.Errorf("%s: the status after %d is %+v, %v; want %s", ref, refusal, got, err, state)
			}
			if err := packagestatus.Restore(t.Context(), owner, ref, before); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Parts of a version are not deleted before it: its blobs, the images of an index, and content that is another version,
// too.
func TestPartsOfAVersionAreNotDeleted(t *testing.T) {
	s := start(t, nil)
	owner := s.client(t, s.admin)
	ref := oci.MustParseReference(host + "/acme/provider-boats:v1.0.0")
	var images []*image.Image
	for _, architecture := range []string{"amd64", "arm64"} {
		built, err := image.Build(t.Context(), image.Input{
			PackageYAML: packageYAML("provider-boats", "Boat"), Platform: oci.Platform{OS: "linux", Architecture: architecture},
		})
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, built)
	}
	index, err := image.NewIndex(images...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Push(t.Context(), ref, index); err != nil {
		t.Fatal(err)
	}
	child := images[1].Root().Digest
	if err := owner.Delete(t.Context(), ref.WithDigest(child)); !errors.Is(err, remote.ErrRefused) {
		t.Errorf("an image of an index: %v", err)
	}
	if got := s.do(t, http.MethodDelete, "/v2/acme/provider-boats/blobs/"+child.String(), s.admin, nil).
		StatusCode; got != http.StatusMethodNotAllowed {
		t.Errorf("a blob: %d", got)
	}
	if _, err := owner.Push(t.Context(), ref.WithTag("v1.0.1"), index); err != nil {
		t.Fatal(err)
	}
	if err := owner.Delete(t.Context(), ref.WithDigest(index.Root().Digest)); !errors.Is(err, remote.ErrRefused) {
		t.Errorf("the content of two versions: %v", err)
	}
	other := build(t, packageYAML("provider-boats", "Raft"))
	if _, err := owner.Push(t.Context(), ref.WithTag("v2.0.0"), publish.Index(t, publish.Index(t, other))); err != nil {
		t.Fatal(err)
	}
	if err := owner.Delete(t.Context(), ref.WithDigest(other.Root().Digest)); !errors.Is(err, remote.ErrRefused) ||
		!strings.Contains(err.Error(), "is a part of acme/provider-boats:v2.0.0") {
		t.Errorf("an image of a nested index: %v", err)
	}
	if _, err := owner.Artifact(t.Context(), ref.WithDigest(child)); err != nil {
		t.Error(err)
	}
}

// The deletion of a tag that can move is none of the version with the same content, and is allowed at any age.
func TestTheDeletionOfAnotherTagKeepsTheVersion(t *testing.T) {
	s := start(t, nil)
	for _, tag := range []string{"v1.0.0", "1.0.0", "latest", "v1"} {
		s.mustPush(t, "acme/provider-boats:"+tag, "Boat")
	}
	s.mustPush(t, "acme/provider-rafts:v1.0.0", "Raft")
	s.mustPush(t, "acme/provider-rafts:latest", "Raft")
	token := s.token(t, "alice", []string{"acme/*"}, access.Delete)
	for _, tag := range []string{"acme/provider-boats:latest", "acme/provider-boats:v1", "acme/provider-rafts:latest"} {
		repository, tag, _ := strings.Cut(tag, ":")
		if got := s.do(t, http.MethodDelete, "/v2/"+repository+"/manifests/"+tag, token, nil).
			StatusCode; got != http.StatusAccepted {
			t.Errorf("the deletion of %s:%s: %d", repository, tag, got)
		}
	}
	for repository, want := range map[string][]string{"acme/provider-boats": {"1.0.0", "v1.0.0"}, "acme/provider-rafts": {
		"v1.0.0",
	}} {
		// A status would have a tag.
		if got := s.tags(t, repository); !slices.Equal(got, want) {
			t.Errorf("the tags of %s are %q, want %q", repository, got, want)
		}
	}
}

// The server completes a deletion whose client disconnects once the status is written, and withdraws a status that it
// could not write completely.
func TestAnInterruptedDeletionIsCompleteOrHasNoEffect(t *testing.T) {
	images := localregistry.New(t)
	var afterStatus atomic.Value
	afterStatus.Store(func() int { return http.StatusCreated })
	address := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, ".status") {
			images.ServeHTTP(w, r)
			return
		}
		images.ServeHTTP(httptest.NewRecorder(), r)
		w.WriteHeader(afterStatus.Load().(func() int)())
	})).URL, "http://")
	const repository = "acme/provider-boats"
	s := start(t, func(o *registry.Options) {
		o.Indexer, o.Backend = noIndexer{},
			&registry.BackendOptions{Host: address, PlainHTTP: true, Repositories: []string{repository}}
	})
	client := s.client(t, s.admin)
	deleteVersion := func(ctx context.Context, tag, kind string) oci.Reference {
		t.Helper()
		s.mustPush(t, repository+":"+tag, kind)
		version := oci.MustParseReference(host + "/" + repository + ":" + tag)
		d, err := client.Resolve(t.Context(), version)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(ctx, http.MethodDelete, "/v2/"+repository+"/manifests/"+d.Digest.String(), nil)
		r.Header.Set("Authorization", "Bearer "+s.admin)
		s.ServeHTTP(httptest.NewRecorder(), r)
		return version.WithDigest(d.Digest)
	}
	ctx, disconnect := context.WithCancel(t.Context())
	afterStatus.Store(func() int { disconnect(); return http.StatusCreated })
	deleted := deleteVersion(ctx, "v1.0.0", "Boat")
	s.checkTombstone(t, deleted, "v1.0.0")
	if got := s.do(t, http.MethodGet, "/v2/"+repository+"/manifests/v1.0.0", s.admin, nil).
		StatusCode; got != http.StatusNotFound {
		t.Errorf("the version whose client disconnects: %d", got)
	}

	var failed atomic.Bool
	afterStatus.Store(func() int { // The first status is stored, but the response states that it was refused.
		if failed.CompareAndSwap(false, true) {
			return http.StatusBadRequest
		}
		return http.StatusCreated
	})
	kept := deleteVersion(t.Context(), "v1.1.0", "Raft")
	if got := s.do(t, http.MethodGet, "/v2/"+repository+"/manifests/v1.1.0", s.admin, nil).
		StatusCode; got != http.StatusOK {
		t.Errorf("the version whose status could not be written: %d", got)
	}
	if got, err := packagestatus.Read(t.Context(), client, kept); err != nil || got == nil ||
		got.State != catalog.Available {
		t.Errorf("its status is %+v, %v", got, err)
	}
}

// The status of a deleted version is not replaced while the server cannot read it.
func TestAStatusThatCannotBeReadIsNotReplaced(t *testing.T) {
	images := localregistry.New(t)
	var unreadable atomic.Value
	unreadable.Store("none")
	address := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, unreadable.Load().(string)) {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		images.ServeHTTP(w, r)
	})).URL, "http://")
	const repository = "acme/provider-boats"
	s := start(t, func(o *registry.Options) {
		o.Indexer, o.Backend = noIndexer{},
			&registry.BackendOptions{Host: address, PlainHTTP: true, Repositories: []string{repository}}
	})
	s.mustPush(t, repository+":v1.0.0", "Boat")
	s.mustPush(t, repository+":v1.1.0", "Raft")
	version := oci.MustParseReference(host + "/" + repository + ":v1.1.0")
	subject, err := s.client(t, s.admin).Resolve(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := packagestatus.Delete(t.Context(), s.client(t, s.admin), version, catalog.Status{
		State: catalog.Removed,
	}); err != nil {
		t.Fatal(err)
	}
	target := "/v2/" + repository + "/manifests/" + catalog.StatusTag(subject.Digest)
	var doc oci.Document
	if err := json.NewDecoder(s.do(t, http.MethodGet, target, s.admin, nil).Body).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	available := s.uploadStatus(t, repository, "v1.1.0", catalog.Available, subject)
	unreadable.Store(doc.Layers[0].Digest.String())
	if got := s.do(t, http.MethodPut, target, s.admin, bytes.NewReader(available)).
		StatusCode; got < http.StatusInternalServerError {
		t.Errorf("a push while the status cannot be read: %d", got)
	}
	unreadable.Store("none")
	if got := s.do(t, http.MethodPut, target, s.admin, bytes.NewReader(available)).StatusCode; got != http.StatusConflict {
		t.Errorf("a push after that: %d", got)
	}
	s.checkTombstone(t, version.WithDigest(subject.Digest), "v1.1.0")
}
