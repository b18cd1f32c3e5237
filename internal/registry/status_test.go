package registry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/mirror"
	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// upload uploads the blobs of an artifact to a repository, and returns its manifest.
func (s *server) upload(t *testing.T, repository string, a oci.Artifact) []byte {
	t.Helper()
	raw, doc, err := oci.ReadDocument(t.Context(), a, a.Root(), oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range append([]oci.Descriptor{*doc.Config}, doc.Layers...) {
		content, err := oci.ReadSmall(t.Context(), a, d, oci.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		session := s.do(t, http.MethodPost, "/v2/"+repository+"/blobs/uploads/", s.admin, nil).Header.Get("Location")
		path, query, _ := strings.Cut(session, "?")
		if got := s.do(t, http.MethodPut, path+"?"+query+"&digest="+d.Digest.String(), s.admin, bytes.NewReader(content)).
			StatusCode; got != http.StatusCreated {
			t.Fatalf("upload of a blob to %s: %d", session, got)
		}
	}
	return raw
}

// uploadStatus uploads the blobs of a status of a version, and returns its manifest.
func (s *server) uploadStatus(
	t *testing.T, repository, tag string, state catalog.State, subject oci.Descriptor,
) []byte {
	t.Helper()
	a, err := packagestatus.NewArtifact(subject, catalog.VersionStatus{
		Status: catalog.Status{State: state, Reason: catalog.Broken, Since: time.Unix(1e9, 0)}, Tag: tag,
		Digest: subject.Digest,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.upload(t, repository, a)
}

// asStatus returns a manifest with the type of a status and a subject.
func asStatus(t *testing.T, manifest []byte, subject oci.Descriptor) []byte {
	t.Helper()
	var doc oci.Document
	if err := json.Unmarshal(manifest, &doc); err != nil {
		t.Fatal(err)
	}
	doc.ArtifactType, doc.Subject = catalog.StatusArtifactType, &subject
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// tags returns the tags of a repository, as an administrator reads them.
func (s *server) tags(t *testing.T, repository string) []string {
	t.Helper()
	tags, err := s.client(t, s.admin).ExistingTags(t.Context(), oci.MustParseReference(host+"/"+repository+":latest"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(slices.Values(tags))
}

// Tokens of each action push statuses and what resembles them. A status is one by its content, its tag, and the version
// that it names; everything else needs the action publish.
func TestActionsOfStatuses(t *testing.T) {
	const repository = "acme/boats"
	s := start(t, nil)
	packages := map[string]oci.Artifact{}
	for tag, kind := range map[string]string{
		"v1.0.0": "Boat", "v1.1.0": "Raft", "v1.2.0": "Canoe", "latest": "Boat", "absent": "Car", "next": "Yacht",
	} {
		packages[tag] = build(t, packageYAML("boats", kind))
		ref := oci.MustParseReference(host + "/" + repository + ":" + tag)
		if tag == "absent" || tag == "next" {
			continue // The repository has the blobs only.
		}
		if _, err := s.client(t, s.admin).Push(t.Context(), ref, packages[tag]); err != nil {
			t.Fatal(err)
		}
	}
	deleted := oci.MustParseReference(host + "/" + repository + ":v1.2.0")
	if _, err := packagestatus.Delete(t.Context(), s.client(t, s.admin), deleted, catalog.Status{
		State: catalog.Removed,
	}); err != nil {
		t.Fatal(err)
	}
	boat, raft, canoe, car := packages["v1.0.0"].Root(), packages["v1.1.0"].Root(), packages["v1.2.0"].Root(),
		packages["absent"].Root()
	status := func(tag string, state catalog.State, subject oci.Descriptor) []byte {
		return s.uploadStatus(t, repository, tag, state, subject)
	}
	yanked := status("v1.0.0", catalog.Yanked, boat)
	pretender := asStatus(t, s.upload(t, repository, packages["v1.1.0"]), boat)
	next := s.upload(t, repository, packages["next"])

	allTokens := map[string][]access.Action{
		"read": {access.Read}, "publish": {access.Publish}, "yank": {access.Yank}, "delete": {access.Delete},
		"publish delete": {access.Publish, access.Delete}, "yank delete": {access.Yank, access.Delete},
		"publish yank":        {access.Publish, access.Yank},
		"publish yank delete": {access.Publish, access.Yank, access.Delete}, "administrator": access.Actions(),
	}
	const nothing = ""
	for _, c := range []struct {
		name, reference string
		manifest        []byte
		// needs are the actions that the push needs; nothing means that no token allows it.
		needs string
	}{
		{"a package with the type of a status, as a version", "v9.0.0", pretender, nothing},
		{"a package with the type of a status, by its digest, as a version", oci.DigestOf(pretender).String() +
			"?tag=v9.0.0", pretender, nothing},
		{"a package with the type of a status, by its digest", oci.DigestOf(pretender).String(), pretender, nothing},
		{"a package with the type of a status, under the tag of one", catalog.StatusTag(boat.Digest), pretender, nothing},
		{"a status of another digest than its subject", oci.DigestOf(asStatus(t, yanked, raft)).String(), asStatus(
			t, yanked, raft,
		), nothing},
		{"a status under the tag of another one", catalog.StatusTag(raft.Digest), yanked, nothing},
		{"another status of a deleted version", catalog.StatusTag(canoe.Digest), status(
			"v1.2.0", catalog.Available, canoe,
		), nothing},

		{"a status as a version", "v8.0.0", yanked, "publish yank"},
		{"a status as a tag that can move", "latest", yanked, "publish yank"},
		{"a status by its digest, as a version", oci.DigestOf(yanked).String() + "?tag=v8.1.0", yanked, "publish yank"},
		{"a status under its tag, and as a version", catalog.StatusTag(boat.Digest) + "?tag=v8.2.0", yanked, "publish yank"},
		{"a status of content that the repository does not have", catalog.StatusTag(car.Digest), status(
			"v6.0.0", catalog.Yanked, car,
		), "publish yank"},
		{"a status of content that the repository does not have, by its digest", oci.DigestOf(status(
			"v6.1.0", catalog.Yanked, car,
		)).String(), status("v6.1.0", catalog.Yanked, car), "publish yank"},
		{"a status with the tag of another version", catalog.StatusTag(boat.Digest), status(
			"v1.1.0", catalog.Yanked, boat,
		), "publish yank"},
		{"a status with a tag that does not exist", catalog.StatusTag(raft.Digest), status(
			"v7.0.0", catalog.Deprecated, raft,
		), "publish yank"},
		{"the removal of content that the repository does not have", catalog.StatusTag(oci.DigestOf(next)), status(
			"v7.0.0", catalog.Removed, packages["next"].Root(),
		), "publish yank delete"},

		{"a status", catalog.StatusTag(boat.Digest), yanked, "yank"},
		{"a status by its digest", oci.DigestOf(yanked).String(), yanked, "yank"},
		{"a deprecation", catalog.StatusTag(raft.Digest), status("v1.1.0", catalog.Deprecated, raft), "yank"},
		{"the withdrawal of a status", catalog.StatusTag(boat.Digest), status("v1.0.0", catalog.Available, boat), "yank"},
		{"a status of a deleted version, by its digest", oci.DigestOf(status(
			"v1.2.0", catalog.Yanked, canoe,
		)).String(), status("v1.2.0", catalog.Yanked, canoe), "yank"},
		{"a removal", catalog.StatusTag(raft.Digest), status("v1.1.0", catalog.Removed, raft), "yank delete"},
		{"a package", "v1.3.0", next, "publish"},
	} {
		before := s.tags(t, repository)
		push := func(actions []access.Action) int {
			return s.do(t, http.MethodPut, "/v2/"+repository+"/manifests/"+
				c.reference, s.token(t, "alice", []string{"acme/*"}, actions...), bytes.NewReader(c.manifest)).StatusCode
		}
		allows := func(actions []access.Action) bool {
			return c.needs != nothing && !slices.ContainsFunc(
				strings.Fields(c.needs), func(a string) bool { return !slices.Contains(actions, access.Action(a)) },
			)
		}
		for name, actions := range allTokens {
			if allows(actions) {
				continue
			}
			if got := push(actions); got < http.StatusBadRequest || got >= http.StatusInternalServerError {
				t.Errorf("%s with the actions %s: %d, want a refusal", c.name, name, got)
			}
		}
		if after := s.tags(t, repository); !slices.Equal(before, after) {
			t.Errorf("%s, which was refused, changes the tags from %q to %q", c.name, before, after)
		}
		for name, actions := range allTokens {
			if !allows(actions) {
				continue
			}
			if got := push(actions); got != http.StatusCreated {
				t.Errorf("%s with the actions %s: %d, want %d", c.name, name, got, http.StatusCreated)
			}
		}
	}
}

// A token that only yanks reserves no version: its publisher pushes it afterwards.
func TestAStatusReservesNoVersion(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/boats:v1.0.0", "Boat")
	s.mustPush(t, "acme/cars:v1.0.0", "Car")
	car, err := s.client(t, s.admin).Resolve(t.Context(), oci.MustParseReference(host+"/acme/cars:v1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	yank, publish := s.token(t, "alice", []string{"acme/*"}, access.Yank),
		s.token(t, "alice", []string{"acme/*"}, access.Publish)
	resp := s.do(t, http.MethodPut, "/v2/acme/boats/manifests/"+
		catalog.StatusTag(car.Digest), yank, bytes.NewReader(s.uploadStatus(t, "acme/boats", "v6.0.0", catalog.Yanked, car)))
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusForbidden ||
		!strings.Contains(string(text), "acme/boats:v6.0.0 is not "+car.Digest.Short()) {
		t.Errorf("the status of another package: %d %s", resp.StatusCode, text)
	}
	if err := s.push(t, publish, "acme/boats:v6.0.0", "Raft"); err != nil {
		t.Errorf("the version of the publisher: %v", err)
	}
}

// A status that names a tag that has moved is restored with the tag of the version whose deletion is refused.
func TestARefusedDeletionRestoresTheStatusOfAMovedTag(t *testing.T) {
	s := start(t, nil)
	owner := s.client(t, s.token(t, "alice", []string{"acme/*"}, access.Yank, access.Delete))
	for _, tag := range []string{"v1.0.0", "v1.1.0", "latest"} {
		s.mustPush(t, "acme/boats:"+tag, "Boat")
	}
	if _, err := packagestatus.Write(t.Context(), owner, oci.MustParseReference(host+"/acme/boats:latest"), catalog.Status{
		State: catalog.Yanked, Message: "it sinks",
	}); err != nil {
		t.Fatal(err)
	}
	s.mustPush(t, "acme/boats:latest", "Raft")
	digest, err := packagestatus.Delete(
		t.Context(), owner, oci.MustParseReference(host+"/acme/boats:v1.0.0"), catalog.Status{State: catalog.Removed},
	)
	if !errors.Is(err, remote.ErrRefused) {
		t.Fatalf("the deletion of the content of two versions: %v", err)
	}
	got, err := packagestatus.Read(
		t.Context(), owner, oci.MustParseReference(host+"/acme/boats:v1.0.0").WithDigest(digest),
	)
	if err != nil || got == nil || got.State != catalog.Yanked || got.Message != "it sinks" || got.Tag != "v1.0.0" {
		t.Errorf("the status is %+v, %v", got, err)
	}
}

// A mirror copies the status of a version that it never had.
func TestAMirrorHasTheStatusOfADeletedVersion(t *testing.T) {
	const target = "mirror.example.org"
	source := start(t, nil)
	copies := start(t, func(o *registry.Options) { o.Host = target })
	reader := newReader(t, source)
	source.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	source.mustPush(t, "acme/provider-boats:v1.1.0", "Raft")
	ref := oci.MustParseReference(host + "/acme/provider-boats:v1.1.0")
	digest, err := packagestatus.Delete(t.Context(), source.client(t, source.admin), ref, catalog.Status{
		State: catalog.Removed, Reason: catalog.Broken,
	})
	if err != nil {
		t.Fatal(err)
	}
	source.waitUntil(t, "the version is removed", func() bool { return slices.Equal(reader.kinds(t), []string{"Boat"}) })
	o, _ := mirrorOptions(t, source, copies, target)
	current := reader.catalog(t)
	if _, err := mirror.Run(t.Context(), o, &current); err != nil {
		t.Fatal(err)
	}
	got, err := packagestatus.Read(
		t.Context(), o.Client, oci.MustParseReference(target+"/acme/provider-boats:v1.1.0").WithDigest(digest),
	)
	if err != nil || got == nil || got.State != catalog.Removed || got.Tag != "v1.1.0" {
		t.Errorf("the status in the mirror is %+v, %v", got, err)
	}
}
